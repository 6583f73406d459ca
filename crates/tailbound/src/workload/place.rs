//! Where a result file goes: whole or not at all.

use crate::failure::{Failure, Outcome};
use crate::output;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What a file is written through.
pub type Sink<'a> = BufWriter<Box<dyn Write + Send + 'a>>;

/// Has `fill` write `path`: under another name first, which becomes `path` once all of it is on the disk. `-` is standard output;
/// devices and pipes, which can't be replaced, are written straight through.
pub fn write(path: &Path, fill: impl FnOnce(&mut Sink) -> Outcome<()>) -> Outcome<()> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        through(Box::new(&mut bytes), path, fill)?;
        return output::print(&String::from_utf8_lossy(&bytes));
    }
    let failed = |e: io::Error| Failure::new(format!("failed to write {}: {e}", path.display()));
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|m| m.is_dir()) {
        return Err(Failure::new(format!("failed to write {}: it is a folder", path.display())).hint("name a file"));
    }
    if there.as_ref().is_some_and(|m| !m.is_file()) {
        return through(Box::new(File::options().write(true).open(path).map_err(failed)?), path, fill);
    }
    // A link stays, and what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let partial = partial(&target);
    let file = File::create_new(&partial).map_err(failed)?;
    let done = through(Box::new(&file), path, fill)
        .and_then(|()| there.map_or(Ok(()), |m| file.set_permissions(m.permissions())).map_err(failed))
        .and_then(|()| file.sync_all().map_err(failed))
        .and_then(|()| fs::rename(&partial, &target).map_err(failed));
    if done.is_err() {
        let _ = fs::remove_file(&partial);
    }
    done
}

/// A place's name for people.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") { "stdout".to_owned() } else { path.display().to_string() }
}

fn through<'a>(
    to: Box<dyn Write + Send + 'a>,
    path: &Path,
    fill: impl FnOnce(&mut Sink) -> Outcome<()>,
) -> Outcome<()> {
    let mut sink = BufWriter::new(to);
    fill(&mut sink)?;
    sink.flush().map_err(|e| Failure::new(format!("failed to write {}: {e}", path.display())))
}

fn partial(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}.partial", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_failure_half_way_leaves_what_was_there_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let half = |sink: &mut Sink| {
            sink.write_all(&[b'x'; 100_000]).unwrap();
            Err(Failure::new("half way"))
        };
        assert!(write(&path, half).is_err());
        assert!(names(dir.path()).is_empty());
        write(&path, |sink| sink.write_all(b"whole").map_err(Failure::new)).unwrap();
        assert!(write(&path, half).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(dir.path()), ["out"]);
    }

    #[test]
    fn links_are_followed_and_folders_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, |sink| sink.write_all(b"new").map_err(Failure::new)).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(write(dir.path(), |_| Ok(())).unwrap_err().to_string().contains("folder"));
    }
}
