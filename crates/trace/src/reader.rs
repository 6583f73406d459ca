use crate::account::{Accounting, Notice};
use crate::context::Context;
use crate::conversations::Conversations;
use crate::detect::{self, Format, Look};
use crate::error::{Error, Refusal};
use crate::formats::{self, JsonTable, PerMinute, Table};
use crate::items::{Framing, Items};
use crate::options::Options;
use crate::row::{Clock, Names, Row};
use crate::source::{Bytes, FileBytes, Source, Tally};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A trace being read: an iterator of its rows in file order. It holds one record at a time.
pub struct Reader {
    file: String,
    format: Format,
    fields: Vec<String>,
    tally: Arc<Tally>,
    context: Context,
    rows: Rows,
    ended: bool,
}

enum Rows {
    Table(Box<Table>),
    /// The table, where the records are its rows.
    Json(Items, Option<Box<JsonTable>>),
    Lines(Items),
}

/// Opens a trace file. `.gz` and `.zst` are recognised by content, and so is the format unless [`Options::format`] names it.
pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Reader, Error> {
    let path = path.as_ref();
    let file = path.display().to_string();
    if path.is_dir() {
        let what = Refusal::NotRequests("a directory; a ServeGen pool is a model of clients, to be generated from");
        return Err(Error::File { file, what });
    }
    let opened = std::fs::File::open(path).map_err(|source| Error::Io { file: file.clone(), source })?;
    read(&file, opened, options)
}

/// Reads a trace from any source of bytes; `file` is its name in messages.
pub fn read(file: &str, source: impl Read + Send + 'static, options: &Options) -> Result<Reader, Error> {
    read_boxed(file, Box::new(source), options)
}

fn read_boxed(file: &str, raw: Bytes, options: &Options) -> Result<Reader, Error> {
    let io = |source| Error::Io { file: file.to_owned(), source };
    let refuse = |what| Error::File { file: file.to_owned(), what };
    let source = Source::new(raw).map_err(io)?;
    let look = detect::look(&source.head).map_err(refuse)?;
    let format = match options.format {
        Some(format) => format,
        None if options.columns.is_some() => Format::Custom,
        None => {
            let guess = detect::guess(&look).map_err(refuse)?;
            formats::check_unit(guess, &source).map_err(refuse)?;
            guess
        }
    };
    let block = formats::block_size(format, &source, options);
    let fields = match &look {
        Look::Table(_) if format == Format::Text => Vec::new(),
        Look::Table(names) | Look::Json { keys: names, .. } => names.clone(),
    };
    let tally = source.tally.clone();
    let origin = tally.figures().bytes;
    let mut context = Context::new(options.clone(), Clock::None, block);
    let rows = match look {
        _ if format == Format::Text => Rows::Lines(Items::new(source.bytes, Framing::Lines, origin)),
        Look::Table(_) => Rows::Table(Box::new(Table::new(format, source, &mut context).map_err(refuse)?)),
        Look::Json { framing, keys } if formats::is_table(format) => {
            let table = JsonTable::new(format, &keys, &mut context).map_err(refuse)?;
            Rows::Json(Items::new(source.bytes, framing, origin), Some(Box::new(table)))
        }
        Look::Json { framing, keys } => {
            formats::check_json(format, &keys, options).map_err(refuse)?;
            context.clock = formats::json_clock(format, options);
            if matches!(format, Format::ShareGpt | Format::OpenAiMessages) {
                context.conversations = Some(Box::default());
            }
            Rows::Json(Items::new(source.bytes, framing, origin), None)
        }
    };
    Ok(Reader { file: file.to_owned(), format, fields, tally, context, rows, ended: false })
}

impl Reader {
    /// The format, guessed or named.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The file as the caller named it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The column names, or the first record's fields.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// What [`Row::at`] counts from.
    pub fn clock(&self) -> Clock {
        self.context.clock
    }

    /// Tokens per prefix block: as asked, or by the row lengths, or by the format. `None` if the format has no blocks.
    pub fn block_tokens(&self) -> Option<u32> {
        self.context.block
    }

    /// What became of the rows read so far; complete once the iterator has ended.
    pub fn accounting(&self) -> &Accounting {
        &self.context.account
    }

    /// The strings behind the rows' names.
    pub fn names(&self) -> &Names {
        &self.context.names
    }

    /// Takes the names out, when the rows have been read.
    pub fn into_names(self) -> Names {
        self.context.names
    }

    /// Figures of whole conversations, in formats of conversations.
    pub fn conversations(&self) -> Option<&Conversations> {
        self.context.conversations.as_deref()
    }

    /// Figures of counts per minute, in Azure Functions 2019.
    pub fn per_minute(&self) -> Option<&PerMinute> {
        self.context.per_minute.as_ref()
    }

    /// What the bytes read so far look like.
    pub fn bytes(&self) -> FileBytes {
        self.tally.figures()
    }

    /// Reads one record. False at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        let Reader { file, format, context, rows, .. } = self;
        let io = |source| Error::Io { file: file.clone(), source };
        match rows {
            Rows::Table(table) => table.advance(context).map_err(|e| table_error(file, context.account.records, e)),
            Rows::Lines(items) => {
                let Some(item) = items.next().map_err(io)? else { return Ok(false) };
                let text = utf8(file, item.text, item.offset, context)?;
                context.record();
                formats::text_line(&text, context);
                Ok(true)
            }
            Rows::Json(items, table) => {
                let Some(item) = items.next().map_err(io)? else { return Ok(false) };
                let row = context.account.records + 1;
                let broken = |what| Error::Row { file: file.clone(), row, what };
                if !item.complete {
                    return Err(broken(format!("the file ends inside the record that begins at byte {}", item.offset)));
                }
                let text = utf8(file, item.text, item.offset, context)?;
                context.record();
                match table {
                    Some(table) => table.record(&text, context),
                    None => formats::json_record(*format, &text, context).map_err(broken)?,
                }
                Ok(true)
            }
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.ended = true;
        debug_assert!(self.context.account.adds_up());
        if self.context.account.rows_emitted > 0 {
            return Ok(());
        }
        let account = &self.context.account;
        let what = match (account.rows_read, &self.rows) {
            (0, Rows::Json(..) | Rows::Lines(_)) => Refusal::Empty,
            (rows, _) => Refusal::NoneUsable { rows, reasons: account.reasons() },
        };
        Err(Error::File { file: self.file.clone(), what })
    }
}

impl Iterator for Reader {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Result<Row, Error>> {
        loop {
            if let Some(row) = self.context.pending.pop_front() {
                return Some(Ok(row));
            }
            if self.ended {
                return None;
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return self.finish().err().map(Err),
                Err(e) => {
                    self.ended = true;
                    return Some(Err(e));
                }
            }
        }
    }
}

fn table_error(file: &str, rows_before: u64, e: csv::Error) -> Error {
    let file = file.to_owned();
    match e.into_kind() {
        csv::ErrorKind::Io(source) => Error::Io { file, source },
        other => Error::Row { file, row: rows_before + 1, what: format!("{other:?}") },
    }
}

/// The text of a record, or where it stops being one.
fn utf8<'a>(
    file: &str,
    bytes: &'a [u8],
    offset: u64,
    context: &mut Context,
) -> Result<std::borrow::Cow<'a, str>, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) if context.options.lossy => {
            context.account.notice(Notice::LossyText);
            Ok(String::from_utf8_lossy(bytes))
        }
        Err(e) => {
            let byte = offset + e.valid_up_to() as u64;
            Err(Error::File { file: file.to_owned(), what: Refusal::NotUtf8 { byte } })
        }
    }
}
