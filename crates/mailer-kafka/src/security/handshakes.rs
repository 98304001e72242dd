//! Tests of TLS against a server in this process, over a pipe: who is trusted, who is refused, and in which words.

use super::http::Endpoint;
use super::secret::Secret;
use super::tls::Tls;
use super::{Pem, TlsSettings};
use crate::client::{Cause, Failure};
use mailer_core::ErrorKind;
use mailer_tls::{certificates, private_key};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::client::TlsStream;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    authority_named("Test CA")
}

fn authority_named(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Certificate and key, PEM.
fn issued(authority: &Authority, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

/// A broker with this certificate; with `clients`, it demands one of that authority.
fn acceptor(shown: &(String, String), clients: Option<&Authority>) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = certificates(&Pem::text(shown.0.clone())).unwrap();
    let config = builder.with_single_cert(chain, private_key(&Pem::text(shown.1.clone())).unwrap()).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

fn trusting(authority: &Authority) -> TlsSettings {
    TlsSettings { authorities: vec![Pem::text(authority.pem())], ..TlsSettings::default() }
}

/// Connects to `localhost`; the server answers one byte after the handshake.
async fn connect(settings: &TlsSettings, acceptor: TlsAcceptor) -> Result<TlsStream<DuplexStream>, Failure> {
    let (near, far) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        if let Ok(mut stream) = acceptor.accept(far).await {
            let _ = stream.write_all(b"k").await;
            let _ = stream.flush().await;
        }
    });
    Tls::new(settings).unwrap().connect(near, "localhost").await
}

/// The message of a refused handshake.
async fn refused(settings: &TlsSettings, acceptor: TlsAcceptor) -> String {
    let failure = connect(settings, acceptor).await.err().unwrap();
    assert_eq!(failure.cause, Cause::Setting, "{failure}");
    assert!(failure.message.starts_with("TLS with localhost: "), "{failure}");
    failure.message
}

/// What the first read of a made connection says.
async fn first_read(settings: &TlsSettings, acceptor: TlsAcceptor) -> std::io::Result<u8> {
    let mut stream = connect(settings, acceptor).await.unwrap();
    let read = stream.read_u8().await;
    read.map_err(|error| super::tls_failure::while_reading(error, settings.client.is_some()))
}

#[tokio::test]
async fn a_certificate_for_the_host_of_a_trusted_authority_is_taken() {
    let ca = authority();
    for host in ["localhost", "127.0.0.1"] {
        let settings = TlsSettings { server_name: Some(host.into()), ..trusting(&ca) };
        assert_eq!(first_read(&settings, acceptor(&issued(&ca, host, |_| {}), None)).await.unwrap(), b'k');
    }
}

#[tokio::test]
async fn an_unknown_authority_is_refused_with_the_setting_that_names_it() {
    let shown = issued(&authority_named("a stranger"), "localhost", |_| {});
    let error = refused(&trusting(&authority()), acceptor(&shown, None)).await;
    assert!(error.contains("not trusted") && error.contains("`ca_file`"), "{error}");
    let renewed = issued(&authority(), "localhost", |_| {});
    let error = refused(&trusting(&authority()), acceptor(&renewed, None)).await;
    assert!(error.contains("another key") && error.contains("`ca_file`"), "{error}");
    // No check of the name is still a check of the authority.
    let lax = TlsSettings { skip_hostname_check: true, ..trusting(&authority()) };
    assert!(refused(&lax, acceptor(&shown, None)).await.contains("`ca_file`"));
}

#[tokio::test]
async fn a_wrong_name_is_refused_with_both_names() {
    let ca = authority();
    let shown = issued(&ca, "elsewhere.example", |_| {});
    let error = refused(&trusting(&ca), acceptor(&shown, None)).await;
    assert!(error.contains("elsewhere.example") && error.contains("\"localhost\""), "{error}");
    let named = TlsSettings { server_name: Some("elsewhere.example".into()), ..trusting(&ca) };
    assert_eq!(first_read(&named, acceptor(&shown, None)).await.unwrap(), b'k');
    let lax = TlsSettings { skip_hostname_check: true, ..trusting(&ca) };
    assert_eq!(first_read(&lax, acceptor(&shown, None)).await.unwrap(), b'k');
}

#[tokio::test]
async fn dates_are_checked_even_where_names_are_not() {
    let ca = authority();
    let expired = issued(&ca, "localhost", |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    });
    let early = issued(&ca, "localhost", |params| params.not_before = date_time_ymd(3000, 1, 1));
    for skip_hostname_check in [false, true] {
        let settings = TlsSettings { skip_hostname_check, ..trusting(&ca) };
        let error = refused(&settings, acceptor(&expired, None)).await;
        assert!(error.contains("has expired") && error.contains("renew"), "{error}");
        assert!(refused(&settings, acceptor(&early, None)).await.contains("not valid yet"));
    }
}

#[tokio::test]
async fn a_demanded_client_certificate_must_be_there_and_be_trusted() {
    let (ca, stranger, namesake) = (authority(), authority_named("a stranger"), authority());
    let shown = issued(&ca, "localhost", |_| {});
    let with = |(chain, key): (String, String)| TlsSettings {
        client: Some((Pem::text(chain), Pem::text(key))),
        ..trusting(&ca)
    };
    let error = first_read(&trusting(&ca), acceptor(&shown, Some(&ca))).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("`client_certificate`"), "{error}");
    for other in [stranger, namesake] {
        let theirs = with(issued(&other, "mailer", |_| {}));
        let error = first_read(&theirs, acceptor(&shown, Some(&ca))).await.unwrap_err();
        assert!(error.to_string().contains("refuses our client certificate"), "{error}");
    }
    let ours = with(issued(&ca, "mailer", |_| {}));
    assert_eq!(first_read(&ours, acceptor(&shown, Some(&ca))).await.unwrap(), b'k');
}

#[tokio::test]
async fn an_answer_in_plaintext_and_a_closed_connection_are_told_apart_from_tls() {
    let tls = Tls::new(&trusting(&authority())).unwrap();
    let (near, mut far) = tokio::io::duplex(64 << 10);
    far.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let failure = tls.connect(near, "localhost").await.unwrap_err();
    assert!(failure.cause == Cause::Setting && failure.message.contains("plaintext port"), "{failure}");
    let (near, far) = tokio::io::duplex(64 << 10);
    drop(far);
    let failure = tls.connect(near, "localhost").await.unwrap_err();
    assert!(failure.cause == Cause::Retriable, "{failure}");
    let (near, _far) = tokio::io::duplex(64 << 10);
    assert!(tls.connect(near, "no host").await.unwrap_err().message.contains("\"no host\""));
}

#[test]
fn a_key_of_another_certificate_is_refused_with_both_files() {
    let ca = authority();
    let (one, other) = (issued(&ca, "mailer", |_| {}), issued(&ca, "mailer", |_| {}));
    let client = Some((Pem::text(one.0), Pem::text(other.1)));
    let error = Tls::new(&TlsSettings { client, ..trusting(&ca) }).err().unwrap();
    assert!(error.kind() == ErrorKind::InvalidPlan && error.message().contains("not that of"), "{error}");
}

/// Answers one request over TLS, on loopback; gives the port, and then the request.
async fn https(acceptor: TlsAcceptor, answer: &'static str) -> (u16, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let Ok(mut stream) = acceptor.accept(listener.accept().await.unwrap().0).await else { return String::new() };
        let mut request = vec![0; 4096];
        let mut read = 0;
        while !request[..read].ends_with(b"grant_type=x") {
            read += stream.read(&mut request[read..]).await.unwrap();
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        String::from_utf8(request[..read].to_vec()).unwrap()
    });
    (port, serving)
}

#[tokio::test]
async fn a_token_endpoint_is_asked_over_tls() {
    let ca = authority();
    let shown = issued(&ca, "localhost", |_| {});
    let (port, serving) = https(acceptor(&shown, None), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
    let endpoint = Endpoint::parse(&format!("https://localhost:{port}/token?tenant=1")).unwrap();
    let answer = endpoint.post(&Secret::new("Basic abc"), "grant_type=x".into(), &[Pem::text(ca.pem())]).await.unwrap();
    assert_eq!((answer.status, answer.body.as_ref()), (200, b"{}".as_slice()));
    let request = serving.await.unwrap().to_ascii_lowercase();
    assert!(request.starts_with("post /token?tenant=1 http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("host: localhost:{port}\r\n")), "{request}");
    assert!(request.contains("authorization: basic abc\r\n"), "{request}");
}

#[tokio::test]
async fn a_token_endpoint_that_cannot_be_trusted_or_reached_is_named() {
    let shown = issued(&authority_named("a stranger"), "localhost", |_| {});
    let (port, _serving) = https(acceptor(&shown, None), "").await;
    let endpoint = Endpoint::parse(&format!("https://localhost:{port}/")).unwrap();
    let authorities = [Pem::text(authority().pem())];
    let error = endpoint.post(&Secret::new("Basic hunter2"), String::new(), &authorities).await.err().unwrap();
    assert!(error.kind() == ErrorKind::InvalidPlan && error.message().contains("token endpoint https://"), "{error}");
    assert!(error.message().contains("not trusted") && !error.message().contains("hunter2"), "{error}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let error = endpoint.post(&Secret::new("Basic hunter2"), String::new(), &[]).await.err().unwrap();
    assert!(error.kind() == ErrorKind::Unavailable && error.message().contains("does not answer"), "{error}");
}
