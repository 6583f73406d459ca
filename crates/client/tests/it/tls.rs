use crate::server::*;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use tailbound_client::{Config, Control, Target, Trust, fetch};
use tailbound_clock::Dur;
use tailbound_record::{Cause, End, Finish, Moment, Phase};

fn tls_server(
    serve: impl Fn(&mut rustls::Stream<'_, rustls::ServerConnection, TcpStream>) + Send + Sync + 'static,
) -> (SocketAddr, String) {
    tls_server_of(&[], serve)
}

/// A TLS server of these protocols with a certificate of its own for `localhost`; its address and the certificate as PEM.
pub fn tls_server_of(
    protocols: &[&[u8]],
    serve: impl Fn(&mut rustls::Stream<'_, rustls::ServerConnection, TcpStream>) + Send + Sync + 'static,
) -> (SocketAddr, String) {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a test certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("a test certificate")
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)
        .expect("a test certificate");
    config.send_half_rtt_data = true;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let config = Arc::new(config);
    let addr = start(move |mut socket, _| {
        let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).expect("a TLS connection");
        serve(&mut rustls::Stream::new(&mut tls, &mut socket));
        tls.send_close_notify();
        let _ = tls.write_tls(&mut socket);
    });
    (addr, issued.cert.pem())
}

fn answer_all(stream: &mut (impl Read + Write)) {
    while read_request(stream).is_some() {
        let answer = format!("{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(4)));
        for part in answer.as_bytes().chunks(50) {
            if stream.write_all(part).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    }
}

pub fn tls_target(addr: SocketAddr, trust: Trust) -> Target {
    let mut target = Target::parse(&format!("https://localhost:{}", addr.port())).expect("a URL");
    target.trust = trust;
    target
}

#[test]
fn tls_is_read_like_plain_text() {
    let (addr, pem) = tls_server(|stream| answer_all(stream));
    let file = std::env::temp_dir().join(format!("tailbound-client-{}.pem", std::process::id()));
    std::fs::write(&file, pem).unwrap();
    for trust in [Trust::File(file.clone()), Trust::Anything] {
        let target = tls_target(addr, trust);
        let config = Config { preconnect: 1, ..quick() };
        let (rows, log) = drive(&spec(6, 2), &target, &config, &Control::new());
        for row in &rows {
            assert_eq!(row.end, End::Done(Finish::Length));
            assert_eq!((row.chunks.len(), row.text.as_deref()), (4, Some("w0 w1 w2 w3 ")));
        }
        assert_eq!(log.connections, 2);
        assert!(rows.iter().any(|row| row.at.get(Moment::TlsDone).is_some()));
        assert!(rows.iter().any(|row| row.net.reused));
    }
    let reply = fetch(&tls_target(addr, Trust::File(file.clone())), "/v1/models", None, Dur::from_secs(5)).unwrap();
    assert_eq!(reply.status, 200);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_certificate_that_is_not_trusted_fails_with_a_way_out() {
    let (addr, _) = tls_server(|stream| answer_all(stream));
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = std::env::temp_dir().join(format!("tailbound-client-other-{}.pem", std::process::id()));
    std::fs::write(&file, other.cert.pem()).unwrap();
    let (rows, _) = drive(&spec(1, 1), &tls_target(addr, Trust::File(file.clone())), &quick(), &Control::new());
    std::fs::remove_file(file).unwrap();
    let End::Failed { phase, cause, detail, .. } = &rows[0].end else { panic!("{:?}", rows[0].end) };
    assert_eq!((*phase, *cause), (Phase::Tls, Cause::Tls));
    assert!(detail.contains("not trusted"), "{detail}");
}

#[test]
fn plain_http_on_a_tls_port_is_told() {
    let addr = start(|mut stream, _| {
        let _ = stream.read(&mut [0; 2048]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        hold(stream);
    });
    let (rows, _) = drive(&spec(1, 1), &tls_target(addr, Trust::Anything), &quick(), &Control::new());
    let End::Failed { phase, cause, detail, .. } = &rows[0].end else { panic!("{:?}", rows[0].end) };
    assert_eq!((*phase, *cause), (Phase::Tls, Cause::Tls));
    assert!(detail.contains("does not speak TLS"), "{detail}");
}

#[test]
fn a_tls_stream_cut_without_goodbye_is_not_an_end() {
    let (addr, _) = tls_server(|stream| {
        read_request(stream);
        let _ = stream.write_all(
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{}", event("a", None)).as_bytes(),
        );
        let _ = stream.sock.shutdown(std::net::Shutdown::Both);
    });
    let (rows, _) = drive(&spec(1, 1), &tls_target(addr, Trust::Anything), &quick(), &Control::new());
    assert!(matches!(rows[0].end, End::Failed { cause: Cause::Reset, .. }), "{:?}", rows[0].end);
}
