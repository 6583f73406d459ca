//! Getting a tokenizer from the Hugging Face hub into its local cache, laid out as `huggingface_hub` does.

use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use tailbound_client::{Header, Reply, Target, fetch};
use tailbound_clock::Dur;
use tailbound_token::Hub;

/// Downloads `tokenizer.json` of the repository and returns where it is now.
///
/// `HF_ENDPOINT` names another hub, `HF_TOKEN` the key for private repositories; the caller has seen to `HF_HUB_OFFLINE`.
pub fn download(hub: &Hub, name: &str) -> Outcome<PathBuf> {
    let folder = hub.folder(name).ok_or_else(|| Failure::new(format!("{name} can't be the name of a repository")))?;
    let endpoint = std::env::var("HF_ENDPOINT").unwrap_or_else(|_| "https://huggingface.co".into());
    let url = format!("{}/{name}/resolve/main/tokenizer.json", endpoint.trim_end_matches('/'));
    let doing = format!("downloading {url}");
    let key = std::env::var("HF_TOKEN").ok().filter(|k| !k.is_empty());
    let reply = follow(&url, key.as_deref()).map_err(|e| e.during(&doing))?;
    match reply.status {
        200 => keep(&folder, &reply.body)
            .map_err(|e| Failure::new(format!("failed to write to {}: {e}", folder.display())).during(&doing)),
        401 | 403 => Err(Failure::new(format!("the hub refused with status {}", reply.status))
            .during(&doing)
            .hint("set HF_TOKEN to a key that may read the repository")),
        status => Err(Failure::new(format!("the hub answered with status {status}")).during(&doing)),
    }
}

/// Asks, and goes where redirects point. The key goes to the hub itself only, never to where it points.
fn follow(url: &str, key: Option<&str>) -> Outcome<Reply> {
    const MOST: usize = 5;
    const PATIENCE: Dur = Dur::from_secs(60);
    let failed = |e: tailbound_client::ClientError| Failure::new(format!("failed to {e}"));
    let mut url = url.to_owned();
    for hop in 0..MOST {
        let (base, path) = split(&url).ok_or_else(|| Failure::new(format!("not an address: {url}")))?;
        let mut target = Target::parse(base).map_err(failed)?;
        if let Some(key) = key.filter(|_| hop == 0) {
            target.headers.push(Header::new("authorization", &format!("Bearer {key}")).map_err(failed)?);
        }
        let reply = fetch(&target, path, None, PATIENCE).map_err(failed)?;
        match (reply.status, &reply.location) {
            (301 | 302 | 303 | 307 | 308, Some(to)) if to.starts_with('/') => url = format!("{base}{to}"),
            (301 | 302 | 303 | 307 | 308, Some(to)) => url = to.to_string(),
            _ => return Ok(reply),
        }
    }
    Err(Failure::new(format!("more than {MOST} redirects")))
}

/// `scheme://host` and the path.
fn split(url: &str) -> Option<(&str, &str)> {
    let host = url.find("://")? + 3;
    let path = url[host..].find('/')? + host;
    Some(url.split_at(path))
}

/// Under `snapshots/main`, with `refs/main` pointing there; written whole or not at all.
fn keep(folder: &Path, body: &[u8]) -> std::io::Result<PathBuf> {
    const REVISION: &str = "main";
    let snapshot = folder.join("snapshots").join(REVISION);
    std::fs::create_dir_all(&snapshot)?;
    std::fs::create_dir_all(folder.join("refs"))?;
    let file = snapshot.join("tokenizer.json");
    let part = snapshot.join(format!("tokenizer.json.{}.part", std::process::id()));
    std::fs::write(&part, body)?;
    std::fs::rename(&part, &file)?;
    let reference = folder.join("refs/main");
    if !reference.exists() {
        std::fs::write(reference, REVISION)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn a_redirect_is_followed_without_the_key_and_the_file_is_found_by_the_hubs_rules() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for answer in [
                "HTTP/1.1 307 x\r\nlocation: /blob\r\ncontent-length: 0\r\n\r\n",
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
            ] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut bytes = vec![0; 4096];
                let n = stream.read(&mut bytes).unwrap();
                asked.push(String::from_utf8_lossy(&bytes[..n]).to_ascii_lowercase());
                stream.write_all(answer.as_bytes()).unwrap();
            }
            asked
        });
        let reply = follow(&format!("{base}/org/m/resolve/main/tokenizer.json"), Some("hf_secret")).unwrap();
        assert_eq!((reply.status, &reply.body[..]), (200, &b"{}"[..]));
        let asked = server.join().unwrap();
        assert!(asked[0].starts_with("get /org/m/resolve/main/tokenizer.json ") && asked[0].contains("hf_secret"));
        assert!(asked[1].starts_with("get /blob ") && !asked[1].contains("hf_secret"));

        let cache = tempfile::tempdir().unwrap();
        let hub = Hub { cache: Some(cache.path().to_owned()), offline: false };
        let file = keep(&hub.folder("org/m").unwrap(), b"{}").unwrap();
        assert_eq!(hub.find("org/m").unwrap().file(), file);
    }
}
