//! llama.cpp's own `/completion`: `{"content":…,"tokens":[…],"stop":false,…}`.

use super::Event;
use super::choices::attribute;
use super::progress::Progress;
use crate::json::{Bad, Field, Scan};
use crate::usage::Usage;

/// Reads one chunk, or a reply in one piece (the same object).
pub(super) fn read(data: &[u8], progress: &mut Progress, event: &mut Event) -> Result<(), Bad> {
    let mut scan = Scan::new(data);
    let mut content = Field::Absent;
    let mut index = 0;
    let mut ids = None;
    let mut stop = false;
    let mut stop_type = Field::Absent;
    let mut usage = Usage::default();
    let mut error = None;
    scan.object(|key, scan| {
        match key {
            b"content" => content = scan.field()?,
            b"index" => index = scan.count()?.unwrap_or(0),
            b"tokens" => ids = scan.length()?,
            b"stop" => stop = scan.is_true()?,
            b"stop_type" => stop_type = scan.field()?,
            b"tokens_predicted" => usage.output = scan.count()?,
            b"tokens_evaluated" => usage.prompt = scan.count()?,
            b"timings" => usage.cached = Usage::read_timings(scan)?.cached,
            b"error" => error = Some(scan.raw()?),
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    scan.end()?;
    if let Some(error) = error.filter(|error| *error != b"null") {
        progress.fail_json(error, event);
    }
    let is_chunk = content != Field::Absent || stop;
    if is_chunk {
        progress.see(index);
    }
    let ids = ids.filter(|ids| *ids > 0);
    let filled = content.filled();
    if filled.is_some() || (content != Field::Absent && !stop) {
        Progress::output(event, index, filled.is_some(), ids);
    }
    if let (Some(texts), Some(text)) = (&mut progress.text, filled) {
        texts.add(index, text);
    }
    if stop {
        let reason =
            stop_type.filled().map(|kind| if kind.is("limit") { "length".to_owned() } else { "stop".to_owned() });
        progress.finish(index, reason, event);
    }
    let before = progress.output_stated();
    progress.usage(&usage, is_chunk.then_some(index), event);
    attribute(usage.output, before, is_chunk, progress, event);
    Ok(())
}
