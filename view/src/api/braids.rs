//! The median instance of a span and the slowest one, as rows and pieces: the walks from which `--explain` makes its
//! bands.

use serde_json::Value;
use sigmund_measures::BRAIDS;
use sigmund_query::{Measured, measure};

use super::{
    Query, Refusal,
    measure::{Asked, answered, command, filter, options, pair},
};
use crate::{View, key::Kind};

pub(super) async fn braids(view: &View, query: &Query) -> Result<Value, Refusal> {
    let (keys, window, options) = (query.keys()?, query.window(view)?, options(query)?);
    let filter = filter(view, keys.as_deref(), window);
    let Measured { answer, .. } = measure(&view.trace, &BRAIDS, &filter, &options).await?;
    let asked = Asked {
        keys: keys.as_deref(),
        window,
        kind: keys.as_ref().and_then(|keys| keys.first()).map_or(Kind::Thread, |key| key.kind),
        by: options.by,
        subject: query.get("subject"),
        pair: pair(query),
        worst: options.worst,
    };
    let (command, sql) = command(view, BRAIDS.name, &asked);
    Ok(answered(view, &Measured { answer, gaps: 0 }, &command, &sql))
}
