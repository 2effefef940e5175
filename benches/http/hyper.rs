//! A peer of `examples/http`: hyper on tokio, which answers every request as that answers `GET /`.

use std::{convert::Infallible, env, io};

use http_body_util::Full;
use hyper::{Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, runtime::Builder, task};

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("Hello, world!")))
}

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8080".into());
    let workers = arguments.next().and_then(|workers| workers.parse().ok()).unwrap_or(1);
    // With one CPU, the cheaper of its two schedulers.
    let mut builder = if workers == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    let runtime = builder.worker_threads(workers).enable_io().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind(&address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            task::spawn(async move {
                // Ends with the connection; an error is that of the client.
                let _ =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            });
        }
    })
}
