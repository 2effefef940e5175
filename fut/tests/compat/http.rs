//! HTTP by hyper: a server and a client on user threads, without tokio's runtime.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use fut::{
    block_on,
    compat::{Executor, Timer},
    net::{TcpListener, TcpStream},
    spawn,
};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client,
    rt::Executor as _,
    server::conn::http1,
    service::service_fn,
};

use super::kind::builder;

/// Answers with the path and the body, backwards; a slow path takes 20 ms.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_string();
    if path == "/slow" {
        fut::compat::sleep(Duration::from_millis(20)).await;
    }
    let Ok(body) = request.into_body().collect().await else {
        let mut refused = Response::new(Full::default());
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(refused);
    };
    let mut bytes = body.to_bytes().to_vec();
    bytes.reverse();
    Ok(Response::new(Full::from([path.as_bytes(), b" ", &bytes].concat())))
}

fn serve(listener: TcpListener, connections: usize) {
    let served: Vec<_> = (0..connections)
        .map(|_| {
            let (stream, _) = listener.accept().unwrap();
            spawn(|| {
                let mut http = http1::Builder::new();
                http.timer(Timer::new()).header_read_timeout(Duration::from_secs(20));
                block_on(http.serve_connection(stream, service_fn(answer)))
            })
        })
        .collect();
    for connection in served {
        connection.join().unwrap().unwrap();
    }
}

/// Asks on one connection, one question after the other.
async fn ask(server: SocketAddr, client: usize, questions: usize) {
    let stream = TcpStream::connect(server).unwrap();
    let (mut sender, connection) = client::conn::http1::handshake(stream).await.unwrap();
    Executor::new().execute(async {
        connection.await.unwrap();
    });
    for question in 0..questions {
        let path = if question == 3 { "/slow".to_string() } else { format!("/{client}/{question}") };
        let body = vec![b'a' + (question % 20) as u8; question * 5000];
        let request =
            Request::post(&path).header("host", "localhost").body(Full::<Bytes>::from(body.clone()));
        // The connection is polled by another thread, which may have yet to see that the last answer has been read.
        sender.ready().await.unwrap();
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let answered = response.into_body().collect().await.unwrap().to_bytes();
        assert!(*answered == [path.as_bytes(), b" ", &body].concat(), "{path}: {} bytes", answered.len());
    }
}

#[test]
fn hyper_serves_and_asks_on_user_threads() {
    for lwps in [1, 2] {
        builder().lwps(lwps).build().unwrap().run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = spawn(|| serve(listener, 20));
            let clients: Vec<_> =
                (0..20).map(|client| spawn(move || block_on(ask(address, client, 20)))).collect();
            for client in clients {
                client.join().unwrap();
            }
            server.join().unwrap();
        });
    }
}

#[test]
fn a_timer_of_hyper_ends_a_connection_that_sends_no_request() {
    builder().lwps(1).build().unwrap().run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let start = std::time::Instant::now();
        std::io::Write::write_all(&mut client, b"GET / HTTP/1.1\r\nhost:").unwrap();
        let mut http = http1::Builder::new();
        http.timer(Timer::new()).header_read_timeout(Duration::from_millis(50));
        let error = block_on(http.serve_connection(stream, service_fn(answer))).unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert!(start.elapsed() >= Duration::from_millis(50));
    });
}
