//! Schemata on the command line: `--schema NAME|FILE.toml`, and `sigmund schema`, which lists and prints the built-in
//! ones.

use std::{io::Write, path::Path};

use anyhow::{Result, bail};
#[cfg(feature = "sql")]
use sigmund_query::Selector;
#[cfg(feature = "sql")]
use sigmund_schemata::{Asked, Error, Located};
use sigmund_schemata::{OURS, Schema, names, nearest, our};

use crate::{Found, cli::SchemaArgs, terminal};

/// A built-in schema by name, or a file: a text that contains a `/` or ends in `.toml`.
pub(crate) fn argument(text: &str) -> Result<Schema, String> {
    if text.contains('/') || text.ends_with(".toml") {
        let schema = Schema::read(Path::new(text)).map_err(|error| error.to_string())?;
        #[cfg(feature = "sql")]
        parse_questions(&schema).map_err(|error| error.to_string())?;
        return Ok(schema);
    }
    our(text).ok_or_else(|| unknown(text))
}

/// Parses the queries and event selectors. Whether a table or an event exists can be checked only with a super-trace.
#[cfg(feature = "sql")]
fn parse_questions(schema: &Schema) -> Result<(), Error> {
    let wrong = |at: &Located, message: String| Err(Error::in_line(&schema.place, at.line, message));
    for question in &schema.questions {
        match &question.asked {
            Asked::Sql(query) => {
                if let Err(error) = sigmund_sql::check_syntax(&query.text) {
                    return wrong(query, error.to_string());
                }
            }
            Asked::Measure { pair, .. } => {
                for event in pair.iter().flat_map(|(from, to)| [from, to]) {
                    if let Err(error) = event.text.parse::<Selector>() {
                        return wrong(event, error.to_string());
                    }
                }
            }
        }
    }
    Ok(())
}

fn unknown(text: &str) -> String {
    let known: Vec<&str> = names().collect();
    let short: String = text.chars().take(100).collect();
    let near = nearest(&short, names()).join(", ");
    format!("expected one of {}, or FILE.toml; found {short:?}; nearest: {near}", known.join(", "))
}

pub(crate) fn run(args: &SchemaArgs) -> Result<Found> {
    let Some(name) = &args.name else {
        for schema in names().filter_map(our) {
            terminal::line(format_args!("{:<11} {}", schema.name, schema.about))?;
        }
        return Ok(Found::Something);
    };
    let Some((_, text)) = OURS.iter().find(|(our, _)| our == name) else { bail!(unknown(name)) };
    let out = &mut terminal::data();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Found::Something)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_schemata_is_one_of_the_runtime() {
        for key in sigmund_schemata::KEYS.into_iter().chain(["FUT_KEYMASK31", "0x101"]) {
            assert!(fut::parse_keymask(key, "here").is_ok(), "{key}");
        }
        for schema in names().filter_map(our) {
            assert!(schema.keys.is_empty() || fut::parse_keymask(&schema.keys.join(","), "here").is_ok());
        }
    }

    #[test]
    fn the_error_for_an_unknown_schema_lists_the_nearest_and_all_schemata() {
        let message = argument("lokcs").unwrap_err();
        assert!(message.contains("nearest: locks") && message.contains("memory"), "{message}");
        assert!(!argument("\x1b[31m").unwrap_err().contains('\x1b'));
        assert!(argument("no/such.toml").unwrap_err().starts_with("no/such.toml: "));
        assert_eq!(argument("locks").unwrap().name, "locks");
    }

    #[cfg(feature = "sql")]
    #[test]
    fn queries_and_selectors_of_ours_parse_and_others_are_refused_with_their_line() {
        for schema in names().filter_map(our) {
            assert_eq!(parse_questions(&schema), Ok(()), "{}", schema.name);
        }
        let head = "name = \"a\"\nabout = \"A.\"\n[[question]]\ntext = \"What?\"\n";
        let refused = |question: &str| {
            let schema = Schema::parse("my.toml", &format!("{head}{question}")).unwrap();
            parse_questions(&schema).unwrap_err().to_string()
        };
        let message = refused("sql = \"SELEC 1\"");
        assert!(message.starts_with("my.toml:5: ") && message.contains("SELEC"), "{message}");
        let message = refused("sql = \"DROP TABLE events\"");
        assert!(message.starts_with("my.toml:5: ") && message.contains("expected a SELECT"), "{message}");
        let message = refused("measure = \"reactivity\"\nfrom = \"ok\"\nto = \"sched_waking(\"");
        assert!(
            message.starts_with("my.toml:7: ") && message.contains("no closing parenthesis"),
            "{message}"
        );
    }
}
