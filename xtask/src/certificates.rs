//! Certificates for one server and its clients, made when it starts: nothing that expires is kept in the repository.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of one server, all PEM.
#[derive(Debug, Clone)]
pub struct Certificates {
    folder: PathBuf,
}

/// Signs certificates.
type Authority = CertifiedIssuer<'static, KeyPair>;

impl Certificates {
    /// Makes them in `folder`.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let certificates = Self { folder: folder.to_owned() };
        let (trusted, stranger) = (authority("Mailer test CA")?, authority("A stranger's CA")?);
        fs::write(certificates.authority(), trusted.pem())?;
        fs::write(certificates.other_authority(), stranger.pem())?;
        let here = ["localhost", "127.0.0.1", "::1"].as_slice();
        certificates.write_server("server", here, &trusted, |_| {})?;
        certificates.write_server("other-name", &["elsewhere.example"], &trusted, |_| {})?;
        certificates.write_server("expired", here, &trusted, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })?;
        certificates.write_client("client", &trusted)?;
        certificates.write_client("stranger", &stranger)?;
        Ok(certificates)
    }

    /// Who signed the server's certificates.
    pub fn authority(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// Another authority, which signed none of them.
    pub fn other_authority(&self) -> PathBuf {
        self.file("other-ca.pem")
    }

    /// Certificate and private key that the server takes from a client, whose name is `client`.
    pub fn client(&self) -> (PathBuf, PathBuf) {
        (self.file("client.pem"), self.file("client.key"))
    }

    /// The same, but signed by the other authority.
    pub fn stranger(&self) -> (PathBuf, PathBuf) {
        (self.file("stranger.pem"), self.file("stranger.key"))
    }

    /// Certificate and private key of the server.
    pub(crate) fn server(&self) -> (PathBuf, PathBuf) {
        (self.file("server.pem"), self.file("server.key"))
    }

    /// Private key and certificate in one file, as Kafka reads them.
    pub(crate) fn key_store(&self, name: &str) -> PathBuf {
        self.file(&format!("{name}.store.pem"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write_server(
        &self,
        name: &str,
        hosts: &[&str],
        authority: &Authority,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Result<()> {
        let mut params = params(name, hosts, ExtendedKeyUsagePurpose::ServerAuth)?;
        change(&mut params);
        let (certificate, key) = self.write(name, params, authority)?;
        fs::write(self.key_store(name), format!("{key}{certificate}"))?;
        Ok(())
    }

    fn write_client(&self, name: &str, authority: &Authority) -> Result<()> {
        self.write(name, params(name, &[], ExtendedKeyUsagePurpose::ClientAuth)?, authority)?;
        Ok(())
    }

    /// Writes a certificate and its key, and returns both.
    fn write(&self, name: &str, params: CertificateParams, authority: &Authority) -> Result<(String, String)> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, authority)?.pem();
        let key = key.serialize_pem();
        fs::write(self.file(&format!("{name}.pem")), &certificate)?;
        fs::write(self.file(&format!("{name}.key")), &key)?;
        Ok((certificate, key))
    }
}

fn authority(name: &str) -> Result<Authority> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

fn params(name: &str, hosts: &[&str], purpose: ExtendedKeyUsagePurpose) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![purpose];
    Ok(params)
}
