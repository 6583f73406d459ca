use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use tailbound_token::{Hub, Source};

fn hub(vars: &[(&str, &str)]) -> Hub {
    let vars: BTreeMap<&str, &str> = vars.iter().copied().collect();
    Hub::from_vars(|name| vars.get(name).map(OsString::from))
}

#[test]
fn the_cache_is_where_huggingface_hub_has_it() {
    let cache = |vars: &[(&str, &str)]| hub(vars).cache.unwrap();
    let home = ("HOME", "/h");
    assert_eq!(cache(&[home]), Path::new("/h/.cache/huggingface/hub"));
    assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "/x")]), Path::new("/x/huggingface/hub"));
    assert_eq!(cache(&[home, ("HF_HOME", "/hf"), ("XDG_CACHE_HOME", "/x")]), Path::new("/hf/hub"));
    assert_eq!(cache(&[home, ("HF_HOME", "~/hf")]), Path::new("/h/hf/hub"));
    assert_eq!(cache(&[home, ("HF_HUB_CACHE", "/c"), ("HF_HOME", "/hf")]), Path::new("/c"));
    assert_eq!(cache(&[home, ("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", "/old")]), Path::new("/old"));
    assert_eq!(hub(&[]).cache, None);
    for (value, offline) in [("1", true), ("true", true), ("YES", true), ("0", false), ("", false)] {
        assert_eq!(hub(&[home, ("HF_HUB_OFFLINE", value)]).offline, offline, "{value:?}");
    }
}

fn repository(cache: &Path, name: &str, revision: &str) -> PathBuf {
    let snapshot = cache.join(format!("models--{}", name.replace('/', "--"))).join("snapshots").join(revision);
    fs::create_dir_all(&snapshot).unwrap();
    let file = snapshot.join("tokenizer.json");
    fs::write(&file, "{}").unwrap();
    file
}

#[test]
fn a_name_is_the_main_revision_in_the_cache() {
    let root = tempfile::tempdir().unwrap();
    let hub = Hub { cache: Some(root.path().into()), offline: false };
    let old = repository(root.path(), "org/name", "aaa");
    let cached = |file: &Path| Source::Cached { name: "org/name".into(), file: file.into() };
    assert_eq!(hub.find("org/name").unwrap(), cached(&old), "the only snapshot, without a ref");
    let new = repository(root.path(), "org/name", "bbb");
    assert!(hub.find("org/name").is_err(), "two snapshots and no ref: not ours to guess");
    let refs = root.path().join("models--org--name/refs");
    fs::create_dir_all(&refs).unwrap();
    fs::write(refs.join("main"), "bbb\n").unwrap();
    assert_eq!(hub.find("org/name").unwrap(), cached(&new));
    let gpt2 = repository(root.path(), "gpt2", "ccc");
    assert_eq!(hub.find("gpt2").unwrap().file(), gpt2);
}

#[test]
fn what_exists_as_a_path_is_a_path() {
    let root = tempfile::tempdir().unwrap();
    let hub = Hub { cache: Some(root.path().join("cache")), offline: false };
    let folder = root.path().join("model");
    fs::create_dir_all(&folder).unwrap();
    let name = folder.to_str().unwrap();
    let error = hub.find(name).unwrap_err().to_string();
    assert_eq!(error, format!("find tokenizer.json in {name}: no such file"));
    fs::write(folder.join("tokenizer.model"), "").unwrap();
    assert!(hub.find(name).unwrap_err().to_string().contains("only a SentencePiece tokenizer.model"));
    let file = folder.join("tokenizer.json");
    fs::write(&file, "{}").unwrap();
    assert_eq!(hub.find(name).unwrap(), Source::Folder(file.clone()));
    assert_eq!(hub.find(file.to_str().unwrap()).unwrap(), Source::File(file));
}

#[test]
fn what_is_not_found_says_where_it_was_looked_for() {
    let offline = Hub { cache: Some("/cache".into()), offline: true };
    let error = offline.find("org/name").unwrap_err().to_string();
    assert_eq!(
        error,
        "find a tokenizer called \"org/name\": no such file or folder, and not in the Hugging Face cache: looked for \
         /cache/models--org--name/snapshots/<revision>/tokenizer.json (HF_HUB_OFFLINE is set, so nothing is downloaded)"
    );
    let no_home = Hub::default().find("org/name").unwrap_err().to_string();
    assert!(no_home.ends_with("no home folder to look for a Hugging Face cache in"), "{no_home}");
    for path in ["./model", "/no/such/tokenizer.json", "tokenizer.json", "a/b/c", "~/x", "../x", "org/na me", ""] {
        let error = offline.find(path).unwrap_err().to_string();
        assert_eq!(error, format!("find a tokenizer at {path}: no such file or folder"));
        assert_eq!(offline.folder(path), None);
    }
}
