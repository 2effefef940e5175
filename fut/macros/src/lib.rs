//! `#[fut::trace]`. Use it through the crate `fut`, which re-exports it.
//!
//! The macro needs only three parts of a function: the words before `fn`, the name after it, and the body, which is the
//! last group. So it needs no parser of Rust.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// Records `PROF_IN` when the function is entered and `PROF_OUT` when it is left, by `return` or by unwinding.
///
/// Both contain the function's name and source location. Their key is `fut::keys::FUNCTIONS`; if it is off, each costs
/// a disabled probe. The attribute can be used for functions, methods and generic functions. It cannot be used for
/// `const fn`, nor for `async fn`, whose body runs in pieces, possibly on several threads.
///
/// ```ignore
/// #[fut::trace]
/// fn factor(matrix: &mut Matrix) { /* … */ }
/// ```
#[proc_macro_attribute]
pub fn trace(arguments: TokenStream, function: TokenStream) -> TokenStream {
    match traced(arguments, function.clone()) {
        Ok(traced) => traced,
        // The function itself is kept, so that there are no further errors.
        Err((span, message)) => {
            let mut error = compile_error(span, message);
            error.extend(function);
            error
        }
    }
}

fn traced(arguments: TokenStream, function: TokenStream) -> Result<TokenStream, (Span, &'static str)> {
    if let Some(argument) = arguments.into_iter().next() {
        return Err((argument.span(), "#[fut::trace] takes no arguments"));
    }
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let name = name_of(&tokens)?;
    let body = tokens.pop().and_then(body_of);
    let body = body.ok_or((name.span(), "#[fut::trace] needs a function with a body"))?;
    let probe = format!("::fut::__traced!({:?}, {}u32);", name.to_string(), name.span().line());
    let probe: TokenStream = probe.parse().map_err(|_| (name.span(), "#[fut::trace]: not a name"))?;
    let body_tokens: Vec<TokenTree> = body.stream().into_iter().collect();
    let (inner, statements) = body_tokens.split_at(inner_attributes(&body_tokens));
    let mut traced: TokenStream = inner.iter().cloned().collect();
    traced.extend(probe);
    traced.extend(statements.iter().cloned());
    let mut group = Group::new(Delimiter::Brace, traced);
    group.set_span(body.span());
    tokens.push(group.into());
    Ok(tokens.into_iter().collect())
}

/// The number of tokens of the attributes `#![...]` with which a body begins. They have to stay its first tokens.
fn inner_attributes(body: &[TokenTree]) -> usize {
    let is_punct =
        |token: &TokenTree, mark| matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark);
    let is_one = |tokens: &&[TokenTree]| match tokens {
        [hash, bang, TokenTree::Group(group)] => {
            is_punct(hash, '#') && is_punct(bang, '!') && group.delimiter() == Delimiter::Bracket
        }
        _ => false,
    };
    3 * body.chunks(3).take_while(is_one).count()
}

/// The identifier after `fn`, if the words before it allow tracing.
fn name_of(tokens: &[TokenTree]) -> Result<Ident, (Span, &'static str)> {
    let mut tokens = tokens.iter();
    for token in tokens.by_ref() {
        match word(token).as_deref() {
            Some("async") => {
                return Err((
                    token.span(),
                    "#[fut::trace] cannot trace an async fn: its body runs piecemeal, possibly on several threads; \
                     trace the functions it calls",
                ));
            }
            Some("const") => return Err((token.span(), "#[fut::trace] cannot trace a const fn")),
            Some("fn") => break,
            _ => {}
        }
    }
    match tokens.next() {
        Some(TokenTree::Ident(name)) => Ok(name.clone()),
        _ => Err((Span::call_site(), "#[fut::trace]: expected a function")),
    }
}

fn word(token: &TokenTree) -> Option<String> {
    if let TokenTree::Ident(ident) = token { Some(ident.to_string()) } else { None }
}

/// The group in braces. If a macro inserted the body as a `block`, the group is inside another group without
/// delimiters.
fn body_of(token: TokenTree) -> Option<Group> {
    let TokenTree::Group(group) = token else { return None };
    match group.delimiter() {
        Delimiter::Brace => Some(group),
        Delimiter::None => group.stream().into_iter().last().and_then(body_of),
        _ => None,
    }
}

fn compile_error(span: Span, message: &str) -> TokenStream {
    let error: TokenStream = format!("::core::compile_error!({message:?});").parse().unwrap_or_default();
    let spanned = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    error.into_iter().map(spanned).collect()
}
