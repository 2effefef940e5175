//! `sigmund check`: whether a super-trace can be trusted, an input of `merge` is whole, or a Pajé file is valid.

mod input;
#[cfg(feature = "sql")]
mod paje_file;
#[cfg(feature = "sql")]
mod supertrace;

use anyhow::Result;

#[cfg(feature = "sql")]
pub(crate) use supertrace::print_excerpt;

use crate::{Found, cli::CheckArgs, info::is_super_trace, inputs};

pub(crate) fn run(args: CheckArgs) -> Result<Found> {
    let other = args.trace.clone().filter(|path| path.exists() && !is_super_trace(path));
    if let Some(path) = other {
        #[cfg(feature = "sql")]
        if let Some(found) = paje_file::run(&path, &args)? {
            return Ok(found);
        }
        if let Some(inputs) = inputs::open(&path)? {
            return input::run(inputs, &args);
        }
    }
    #[cfg(feature = "sql")]
    return crate::wait_for(supertrace::run(args));
    #[cfg(not(feature = "sql"))]
    match args.trace {
        None => anyhow::bail!("expected an INPUT, found none"),
        Some(path) if path.exists() => anyhow::bail!(
            "{}: expected an input of `merge`; this sigmund was built without SQL, which reads super-traces",
            path.display()
        ),
        Some(path) => anyhow::bail!("{}: there is no such file", path.display()),
    }
}
