//! TLS by rustls: blocking on `Read` and `Write`, and asynchronous on tokio's traits.

use std::{
    io::{Read, Write},
    sync::Arc,
};

use fut::{block_on, net::TcpStream, spawn};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, Stream,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{connected, kind::builder};

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(include_bytes!("certificate/certificate.pem")).unwrap()
}

fn server_config() -> Arc<ServerConfig> {
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("certificate/key.pem")).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate()], key);
    Arc::new(config.unwrap())
}

/// Of a client that trusts the certificate of the tests alone.
fn client_config() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate()).unwrap();
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

/// Longer than a record of TLS, so that it takes several.
fn question() -> Vec<u8> {
    (0..100_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// Answers with the reverse of what came.
fn answer(tcp: TcpStream) {
    let mut connection = ServerConnection::new(server_config()).unwrap();
    let mut tcp = tcp;
    let mut tls = Stream::new(&mut connection, &mut tcp);
    let mut asked = vec![0; question().len()];
    tls.read_exact(&mut asked).unwrap();
    asked.reverse();
    tls.write_all(&asked).unwrap();
    tls.conn.send_close_notify();
    tls.flush().unwrap();
}

fn ask(mut tcp: TcpStream) -> Vec<u8> {
    let mut connection = ClientConnection::new(client_config(), localhost()).unwrap();
    let mut tls = Stream::new(&mut connection, &mut tcp);
    tls.write_all(&question()).unwrap();
    let mut answered = Vec::new();
    tls.read_to_end(&mut answered).unwrap();
    answered
}

async fn answer_polled(tcp: TcpStream) {
    let mut tls = TlsAcceptor::from(server_config()).accept(tcp).await.unwrap();
    let mut asked = vec![0; question().len()];
    tls.read_exact(&mut asked).await.unwrap();
    asked.reverse();
    tls.write_all(&asked).await.unwrap();
    tls.shutdown().await.unwrap();
}

async fn ask_polled(tcp: TcpStream) -> Vec<u8> {
    let mut tls = TlsConnector::from(client_config()).connect(localhost(), tcp).await.unwrap();
    tls.write_all(&question()).await.unwrap();
    let mut answered = Vec::new();
    tls.read_to_end(&mut answered).await.unwrap();
    answered
}

/// Each kind of server with each kind of client, all at a time.
#[test]
fn rustls_encrypts_between_user_threads_blocking_and_polled() {
    for lwps in [1, 2] {
        builder().lwps(lwps).build().unwrap().run(|| {
            let pairs = [(false, false), (false, true), (true, false), (true, true)];
            let clients: Vec<_> = pairs
                .into_iter()
                .map(|(server_is_polled, client_is_polled)| {
                    let (client, server) = connected();
                    spawn(
                        move || {
                            if server_is_polled { block_on(answer_polled(server)) } else { answer(server) }
                        },
                    );
                    spawn(move || if client_is_polled { block_on(ask_polled(client)) } else { ask(client) })
                })
                .collect();
            let mut expected = question();
            expected.reverse();
            for (client, pair) in clients.into_iter().zip(pairs) {
                assert!(client.join().unwrap() == expected, "{pair:?}");
            }
        });
    }
}

#[test]
fn what_passes_is_not_what_is_sent() {
    // So that the test above cannot pass without TLS: a client without trust fails.
    builder().lwps(1).build().unwrap().run(|| {
        let (mut client, server) = connected();
        let server = spawn(move || {
            let (mut connection, mut tcp) = (ServerConnection::new(server_config()).unwrap(), server);
            Stream::new(&mut connection, &mut tcp).read_exact(&mut [0]).is_err()
        });
        let distrusts =
            ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let mut connection = ClientConnection::new(Arc::new(distrusts), localhost()).unwrap();
        let error = Stream::new(&mut connection, &mut client).write_all(b"?").unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
        drop(client);
        assert!(server.join().unwrap());
    });
}
