//! A folder in memory: the checker reads no disk.

use std::collections::{BTreeMap, BTreeSet};

/// Files by their path from the folder on, with `/` between names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    files: BTreeMap<String, Vec<u8>>,
    folders: BTreeSet<String>,
}

impl Folder {
    /// Adds a file, and the folders above it.
    pub fn insert(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.insert(path.to_owned(), content.into());
        if let Some((above, _)) = path.rsplit_once('/') {
            self.insert_folder(above);
        }
    }

    /// Adds a folder, and those above it.
    pub fn insert_folder(&mut self, path: &str) {
        let mut path = path;
        while !path.is_empty() {
            self.folders.insert(path.to_owned());
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// Removes a file, or a folder with everything in it.
    pub fn remove(&mut self, path: &str) {
        let inside = format!("{path}/");
        self.files.retain(|p, _| p != path && !p.starts_with(&inside));
        self.folders.retain(|p| p != path && !p.starts_with(&inside));
    }

    /// A file's content.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Every file.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(p, c)| (p.as_str(), c.as_slice()))
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        path.is_empty() || self.folders.contains(path)
    }

    /// The names of the folders directly inside one.
    pub(super) fn folders_in(&self, path: &str) -> Vec<&str> {
        let inside = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.folders
            .iter()
            .filter_map(|p| p.strip_prefix(&inside))
            .filter(|n| !n.is_empty() && !n.contains('/'))
            .collect()
    }

    /// The names of the files directly inside one.
    pub(super) fn files_in(&self, path: &str) -> Vec<&str> {
        let inside = format!("{path}/");
        self.files.keys().filter_map(|p| p.strip_prefix(&inside)).filter(|n| !n.contains('/')).collect()
    }
}
