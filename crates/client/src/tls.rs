//! TLS without I/O: `rustls` between our own socket and our own HTTP.

use crate::{ClientError, Target, Trust};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// HTTP/2's name in a handshake (RFC 9113, 3.2).
const HTTP2: &[u8] = b"h2";

/// What every TLS connection to one target shares.
#[derive(Clone)]
pub(crate) struct TlsSetup {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsSetup {
    /// `None` for a target without TLS.
    pub fn new(target: &Target) -> Result<Option<TlsSetup>, ClientError> {
        if !target.tls {
            return Ok(None);
        }
        let wrong = |what: String| ClientError::Tls(what);
        let name = ServerName::try_from(target.host.clone())
            .map_err(|_| wrong(format!("{:?} is not a name a certificate can be for", target.host)))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong(e.to_string()))?;
        let mut config = match &target.trust {
            Trust::Anything => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
                .with_no_client_auth(),
            trust => builder.with_root_certificates(roots(trust)?).with_no_client_auth(),
        };
        config.alpn_protocols = vec![if target.http2 { HTTP2 } else { b"http/1.1" }.to_vec()];
        Ok(Some(TlsSetup { config: Arc::new(config), name }))
    }

    /// Holds a server to the protocol that was asked for.
    ///
    /// # Errors
    /// It did not agree to HTTP/2. (One that picks what was not offered fails the handshake.)
    pub fn check(&self, done: &ClientConnection) -> std::io::Result<()> {
        if self.config.alpn_protocols[0] == HTTP2 && done.alpn_protocol() != Some(HTTP2) {
            let picked = done.alpn_protocol().map_or("none, so HTTP/1.1".into(), String::from_utf8_lossy);
            let what = format!("the server was offered HTTP/2 and agreed to {picked} (ALPN); leave --http2 out");
            return Err(std::io::Error::other(what));
        }
        Ok(())
    }

    /// A connection about to begin its handshake.
    pub fn connect(&self) -> Result<Box<ClientConnection>, rustls::Error> {
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        connection.set_buffer_limit(None); // a request's body is written whole; it is in memory anyway
        Ok(Box::new(connection))
    }
}

fn roots(trust: &Trust) -> Result<RootCertStore, ClientError> {
    let mut store = RootCertStore::empty();
    match trust {
        Trust::File(path) => {
            let wrong = |problem: String| ClientError::Tls(format!("read {}: {problem}", path.display()));
            let certificates = CertificateDer::pem_file_iter(path).map_err(|e| wrong(e.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
                store.add(certificate).map_err(|e| wrong(e.to_string()))?;
            }
            if store.is_empty() {
                return Err(wrong("no certificate in it".into()));
            }
        }
        _ => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
            if store.is_empty() {
                let why = found.errors.first().map_or("none found".into(), ToString::to_string);
                return Err(ClientError::Tls(format!(
                    "the system's root certificates: {why}; name a file with your own"
                )));
            }
        }
    }
    Ok(store)
}

/// For people who asked for it: the certificate is not checked, only that the handshake was signed with its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
