//! Makes a schema of a file. Every value is checked when it is read, so that a recording or a report does not fail
//! later because of a mistake in the schema. A schema may come from an untrusted source: a name in it becomes a path in
//! tracefs, and a text is shown on a terminal.

use std::{io::Read, path::Path};

use sigmund_measures::{ALL, By, Measure, Subject};
use toml::Spanned;

use crate::{
    Asked, Error, KEYS, Located, MAX_LEN, Question, Schema, Tracepoint, columns,
    error::line_at,
    ours::suggestion,
    toml_file::{File, FileQuestion},
    union::ALWAYS,
};

/// The longest name and the longest sentence, in characters.
const NAME_LEN: usize = 64;
const SENTENCE_LEN: usize = 200;
/// The longest query, in characters.
const SQL_LEN: usize = 10_000;
/// The maximum number of entries in any list.
const MOST: usize = 200;
/// The maximum number of rows shown for an answer: a report is one page.
const MOST_ROWS: u32 = 50;
const USUAL_ROWS: usize = 5;

impl Schema {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is longer than [`MAX_LEN`], or is no schema: with file, line, and what was expected.
    pub fn read(path: &Path) -> Result<Schema, Error> {
        let place = path.display().to_string();
        let whole = |message: String| Error::at(&place, "", None, message);
        let file = sigmund_files::open_regular(path).map_err(|error| whole(error.to_string()))?;
        let mut bytes = Vec::new();
        file.take(MAX_LEN + 1).read_to_end(&mut bytes).map_err(|error| whole(error.to_string()))?;
        let text = String::from_utf8(bytes)
            .map_err(|error| whole(format!("expected UTF-8, found other bytes: {}", error.utf8_error())))?;
        Schema::parse(&place, &text)
    }

    /// As [`read`](Self::read), for a text. `place` is used in messages.
    ///
    /// # Errors
    /// As those of [`read`](Self::read).
    pub fn parse(place: &str, text: &str) -> Result<Schema, Error> {
        Schema::checked(Checker { place, text, is_recorded: false })
    }

    /// As [`parse`](Self::parse), for a schema that is stored in a super-trace. The version of Sigmund that recorded it
    /// may have had other columns. So unknown columns are accepted, and so are events that the schema needs but does
    /// not record.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse), except for these two.
    pub fn parse_recorded(place: &str, text: &str) -> Result<Schema, Error> {
        Schema::checked(Checker { place, text, is_recorded: true })
    }

    fn checked(checker: Checker<'_>) -> Result<Schema, Error> {
        let Checker { place, text, .. } = checker;
        if text.len() as u64 > MAX_LEN {
            let message = format!("expected at most {MAX_LEN} bytes, found more");
            return Err(Error::at(place, text, None, message));
        }
        let file: File = toml::from_str(text).map_err(|error| {
            let byte = error.span().map(|span| span.start);
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            Error::at(place, text, byte, message)
        })?;
        checker.schema(file)
    }
}

struct Checker<'t> {
    place: &'t str,
    text: &'t str,
    /// Whether the schema is stored in a super-trace.
    is_recorded: bool,
}

impl Checker<'_> {
    fn wrong<T>(&self, at: &Spanned<T>, message: impl Into<String>) -> Error {
        Error::at(self.place, self.text, Some(at.span().start), message)
    }

    fn line_of<T>(&self, at: &Spanned<T>) -> usize {
        line_at(self.text, at.span().start)
    }

    fn located(&self, text: &Spanned<String>) -> Located {
        Located { text: text.get_ref().clone(), line: self.line_of(text) }
    }

    fn schema(&self, file: File) -> Result<Schema, Error> {
        let name = file.name.get_ref();
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > NAME_LEN || !name.chars().all(is_name) {
            let expected = format!("expected a name of a to z, 0 to 9 and -, at most {NAME_LEN} characters");
            return Err(self.wrong(&file.name, format!("{expected}, found {name:?}")));
        }
        if file.question.is_empty() {
            let message = "expected at least one [[question]], found none";
            return Err(Error::at(self.place, self.text, None, message));
        }
        let schema = Schema {
            about: self.sentence(&file.about)?,
            machine: self.list(&file.kernel.machine, |event| self.tracepoint(event))?,
            program: self.list(&file.kernel.program, |event| self.tracepoint(event))?,
            keys: self.list(&file.program.keys, |key| self.key(key))?,
            events: self.list(&file.program.events, |event| self.name(event))?,
            questions: self.list(&file.question, |question| self.question(question.get_ref(), question))?,
            name: name.clone(),
            text: self.text.into(),
            place: self.place.into(),
        };
        if !self.is_recorded {
            self.needs_are_recorded(&file, &schema)?;
        }
        Ok(schema)
    }

    /// Checks that the schema records everything that its answers need from the kernel.
    fn needs_are_recorded(&self, file: &File, schema: &Schema) -> Result<(), Error> {
        let own = schema.machine.iter().chain(&schema.program).map(|tracepoint| tracepoint.event.as_str());
        let recorded: Vec<&str> = own.chain(ALWAYS).collect();
        let needs = file.question.iter().flat_map(|question| &question.get_ref().needs);
        let is_of_kernel = |need: &&Spanned<String>| need.get_ref().contains(':');
        match needs.filter(is_of_kernel).find(|need| !recorded.contains(&need.get_ref().as_str())) {
            None => Ok(()),
            Some(need) => {
                let near = suggestion(need.get_ref(), recorded.into_iter());
                let expected = "expected a tracepoint of [kernel], or one of every recording";
                Err(self.wrong(need, format!("{expected}, found {:?}{near}", need.get_ref())))
            }
        }
    }

    fn list<S, T>(
        &self,
        list: &[Spanned<S>],
        check: impl Fn(&Spanned<S>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        match list.get(MOST) {
            Some(first) => Err(self.wrong(first, format!("expected at most {MOST} entries, found more"))),
            None => list.iter().map(check).collect(),
        }
    }

    /// A text of one line, without control characters.
    fn line(&self, text: &Spanned<String>, longest: usize) -> Result<String, Error> {
        let (found, count) = (text.get_ref(), text.get_ref().chars().count());
        match found.chars().find(|c| c.is_control()) {
            Some(control) => Err(self.wrong(text, format!("expected printable text, found {control:?}"))),
            None if count == 0 || count > longest => {
                let expected = format!("expected 1 to {longest} characters");
                Err(self.wrong(text, format!("{expected}, found {count}")))
            }
            None => Ok(found.clone()),
        }
    }

    fn sentence(&self, text: &Spanned<String>) -> Result<String, Error> {
        self.line(text, SENTENCE_LEN)
    }

    fn name(&self, text: &Spanned<String>) -> Result<String, Error> {
        self.line(text, NAME_LEN)
    }

    fn tracepoint(&self, text: &Spanned<String>) -> Result<Tracepoint, Error> {
        let found = text.get_ref();
        let event = found.strip_suffix('?').unwrap_or(found);
        if is_tracepoint(event) {
            let line = Some(self.line_of(text));
            return Ok(Tracepoint { event: event.into(), optional: event != found, line });
        }
        let expected = "expected SYSTEM:EVENT, as sched:sched_switch, and ? after it if a kernel may lack it";
        Err(self.wrong(text, format!("{expected}; found {found:?}")))
    }

    fn key(&self, text: &Spanned<String>) -> Result<String, Error> {
        let found = text.get_ref();
        let of_c = found.strip_prefix("FUT_KEYMASK").and_then(|number| number.parse::<u8>().ok());
        let bits = found.strip_prefix("0x").filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let is_number = bits.is_some_and(|bits| u64::from_str_radix(bits, 16).is_ok());
        let is_of_c = of_c.is_some_and(|bit| bit < 32 && *found == format!("FUT_KEYMASK{bit}"));
        if KEYS.contains(&found.as_str()) || is_number || is_of_c {
            return Ok(found.clone());
        }
        let expected = format!("expected a key ({}, FUT_KEYMASK0 to FUT_KEYMASK31, 0x…)", KEYS.join(", "));
        Err(self.wrong(text, format!("{expected}, found {found:?}{}", suggestion(found, KEYS.into_iter()))))
    }

    fn question(&self, file: &FileQuestion, at: &Spanned<FileQuestion>) -> Result<Question, Error> {
        let asked = match (&file.measure, &file.sql) {
            (Some(measure), None) => self.measure(file, measure)?,
            (None, Some(sql)) => self.sql(file, sql)?,
            (Some(_), Some(sql)) => return Err(self.wrong(sql, "expected measure or sql, found both")),
            (None, None) => {
                return Err(self.wrong(at, "expected measure or sql in a question, found neither"));
            }
        };
        let top = match &file.top {
            None => USUAL_ROWS,
            Some(top) if (1..=MOST_ROWS).contains(top.get_ref()) => *top.get_ref() as usize,
            Some(top) => {
                let message = format!("expected 1 to {MOST_ROWS} rows, found {}", top.get_ref());
                return Err(self.wrong(top, message));
            }
        };
        Ok(Question {
            text: self.sentence(&file.text)?,
            asked,
            columns: self.list(&file.columns, |column| self.name(column))?,
            sort: file.sort.as_ref().map(|column| self.name(column)).transpose()?,
            top,
            needs: self.list(&file.needs, |event| self.name(event))?,
        })
    }

    fn sql(&self, file: &FileQuestion, sql: &Spanned<String>) -> Result<Asked, Error> {
        let of_measures = [&file.by, &file.subject, &file.from, &file.to];
        if let Some(text) = of_measures.into_iter().flatten().next() {
            return Err(self.wrong(text, "expected no argument of a measure beside sql"));
        }
        if let Some(worst) = &file.worst {
            return Err(self.wrong(worst, "expected no argument of a measure beside sql"));
        }
        if let Some(sort) = &file.sort {
            return Err(self.wrong(sort, "expected no sort beside sql: ORDER BY sorts its rows"));
        }
        if sql.get_ref().chars().count() > SQL_LEN {
            return Err(self.wrong(sql, format!("expected at most {SQL_LEN} characters, found more")));
        }
        Ok(Asked::Sql(self.located(sql)))
    }

    fn measure(&self, file: &FileQuestion, name: &Spanned<String>) -> Result<Asked, Error> {
        let measure = sigmund_measures::named(name.get_ref()).ok_or_else(|| {
            let names = ALL.iter().map(|measure| measure.name);
            let near = suggestion(name.get_ref(), names);
            self.wrong(name, format!("expected a measure, found {:?}{near}", name.get_ref()))
        })?;
        let by = file.by.as_ref().map(|by| self.by(by)).transpose()?;
        let subject = file.subject.as_ref().map(|subject| self.sentence(subject)).transpose()?;
        let pair = self.pair(file, measure, name)?;
        match (measure.subject, &file.subject) {
            (Subject::Required(what), None) => {
                let message = format!("{}: expected subject = {what:?}, found none", measure.name);
                return Err(self.wrong(name, message));
            }
            // On the command line this may be about a single thread instead. A schema selects no thread.
            (Subject::RequiredOrPair(what) | Subject::OptionalOrPair(what), None) if pair.is_none() => {
                let expected = format!("expected subject = {what:?}, or from and to");
                return Err(self.wrong(name, format!("{}: {expected}, found neither", measure.name)));
            }
            (Subject::None | Subject::Pair, Some(subject)) => {
                let message = format!("{}: expected no subject", measure.name);
                return Err(self.wrong(subject, message));
            }
            (_, Some(subject)) if pair.is_some() => {
                let message = format!("{}: expected subject, or from and to, found both", measure.name);
                return Err(self.wrong(subject, message));
            }
            _ => {}
        }
        let worst = file.worst.as_ref().map_or(0, |worst| *worst.get_ref() as usize);
        if !self.is_recorded {
            self.has_columns(file, (measure, by, worst))?;
        }
        Ok(Asked::Measure { measure, by, worst, subject, pair })
    }

    /// Checks each column: some answer of the measure has to have it.
    fn has_columns(
        &self,
        file: &FileQuestion,
        (measure, by, worst): (&Measure, Option<By>, usize),
    ) -> Result<(), Error> {
        let known = columns::of_measure(measure, by, worst);
        file.columns.iter().chain(&file.sort).try_for_each(|wanted| {
            self.name(wanted)?;
            match columns::unknown_column(wanted.get_ref(), &known) {
                Some(message) => Err(self.wrong(wanted, format!("{}: {message}", measure.name))),
                None => Ok(()),
            }
        })
    }

    fn by(&self, by: &Spanned<String>) -> Result<By, Error> {
        By::from_name(by.get_ref()).ok_or_else(|| {
            let names = By::ALL.map(By::name).join(", ");
            self.wrong(by, format!("expected one of {names}, found {:?}", by.get_ref()))
        })
    }

    fn pair(
        &self,
        file: &FileQuestion,
        measure: &Measure,
        name: &Spanned<String>,
    ) -> Result<Option<(Located, Located)>, Error> {
        let takes_pairs = columns::takes_pairs(measure);
        match (&file.from, &file.to) {
            (Some(from), Some(to)) if takes_pairs => {
                self.sentence(from)?;
                self.sentence(to)?;
                Ok(Some((self.located(from), self.located(to))))
            }
            (None, None) if measure.subject == Subject::Pair => {
                Err(self.wrong(name, format!("{}: expected from and to, two events", measure.name)))
            }
            (None, None) => Ok(None),
            (Some(text), _) | (None, Some(text)) => {
                let expected = if takes_pairs { "both from and to" } else { "no from and to" };
                Err(self.wrong(text, format!("{}: expected {expected}", measure.name)))
            }
        }
    }
}

/// Whether a text can be the name of a tracepoint. It becomes a path, so nothing else is accepted.
fn is_tracepoint(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= NAME_LEN
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    text.split_once(':').is_some_and(|(system, event)| is_name(system) && is_name(event))
}
