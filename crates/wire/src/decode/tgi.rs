//! Text Generation Inference: `/generate_stream` (one `token` an event) and `/generate`.

use super::Event;
use super::progress::Progress;
use crate::json::{Bad, Field, Scan};
use crate::usage::Usage;

/// Reads one event, or a reply in one piece.
pub(super) fn read(data: &[u8], progress: &mut Progress, event: &mut Event) -> Result<(), Bad> {
    let mut scan = Scan::new(data);
    let mut token = None;
    let mut generated = Field::Absent;
    let mut reason = Field::Absent;
    let mut usage = Usage::default();
    let mut error = None;
    let mut error_type = Field::Absent;
    scan.object(|key, scan| {
        match key {
            b"token" => {
                let mut text = Field::Absent;
                let mut special = false;
                let is_token = scan.peek() == Some(b'{');
                scan.object_or_skip(|key, scan| {
                    match key {
                        b"text" => text = scan.field()?,
                        b"special" => special = scan.is_true()?,
                        _ => scan.skip()?,
                    }
                    Ok(())
                })?;
                token = is_token.then_some((text, special));
            }
            b"generated_text" => generated = scan.field()?,
            b"details" => scan.object_or_skip(|key, scan| {
                match key {
                    b"finish_reason" => reason = scan.field()?,
                    b"generated_tokens" => usage.output = scan.count()?,
                    b"input_length" => usage.prompt = scan.count()?,
                    // `/generate` lists the prompt's tokens.
                    b"prefill" => usage.prompt = scan.length()?.filter(|n| *n > 0).or(usage.prompt),
                    _ => scan.skip()?,
                }
                Ok(())
            })?,
            b"error" => error = Some(scan.raw()?),
            b"error_type" => error_type = scan.field()?,
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    scan.end()?;
    if let Some(error) = error.filter(|error| *error != b"null") {
        progress.fail_json(error, event);
    } else if let Some(kind) = error_type.filled() {
        progress.fail(super::Fault::ErrorObject, kind.decode(), event);
    }
    let ended = generated != Field::Absent || reason.filled().is_some();
    if token.is_some() || ended {
        progress.see(0);
    }
    match token {
        // The special token that ends the answer has no text, like an empty delta with a finish reason.
        Some((_, true)) if ended => {}
        Some((text, special)) => {
            let shown = text.filled().filter(|_| !special);
            Progress::output(event, 0, shown.is_some(), Some(1));
            if let (Some(texts), Some(text)) = (&mut progress.text, shown) {
                texts.add(0, text);
            }
        }
        None => {
            if let Some(text) = generated.filled() {
                Progress::output(event, 0, true, usage.output);
                if let Some(texts) = &mut progress.text {
                    texts.add(0, text);
                }
            }
        }
    }
    if ended {
        progress.finish(0, reason.filled().map(|reason| reason.decode()), event);
    }
    progress.usage(&usage, None, event);
    Ok(())
}
