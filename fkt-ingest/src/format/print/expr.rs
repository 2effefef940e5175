//! The arguments of a `print fmt`: expressions over the fields of the record.
//!
//! ```text
//!   REC->field   REC->args[1]   __get_str(name)   (unsigned int)(REC->dev >> 20)   a ? b : c
//!   __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" })   __print_flags(REC->f, "|", { 1, "a" })
//! ```
//!
//! Other constructs (statements in braces, functions of the kernel) are not supported; such an event is shown by its
//! fields.

use super::field_location::FieldLocation;
use super::lexer::Token;
use super::types::CType;
use crate::format::machine::Machine;
use crate::format::text::FieldFormat;

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Number(i64, bool),
    Text(String),
    /// A name whose value is not in the format (an `enum` that the kernel did not resolve).
    Unknown,
    /// The whole record.
    Record,
    Field(FieldLocation),
    Index(Box<Expr>, Box<Expr>),
    Cast(CType, Box<Expr>),
    Deref(Box<Expr>),
    Unary(Unary, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Ternary(Box<[Expr; 3]>),
    /// The bytes of a dynamic array, or their number.
    Dynamic(FieldLocation),
    DynamicLen(FieldLocation),
    Bitmask(FieldLocation),
    /// A CPU mask, shown as a list.
    Cpumask(FieldLocation),
    Symbols(Box<Expr>, Vec<(Expr, String)>),
    Flags(Box<Expr>, String, Vec<(Expr, String)>),
    /// Bytes, their number, and the separator.
    Hex(Box<[Expr; 2]>, &'static str),
    /// Numbers: their position, their count, the size of each in bytes.
    Array(Box<[Expr; 3]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Minus,
    Not,
    Invert,
}

/// Binary operators, in order of increasing precedence.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Deeper nesting than in any kernel: flags of a memory allocation have some 20 brackets.
const MAX_DEPTH: usize = 120;

/// Largest height of an expression, because walking it is recursive.
const MAX_HEIGHT: usize = 400;

/// Parses expressions from tokens.
pub(super) struct Parser<'a> {
    pub(super) tokens: &'a [Token<'a>],
    pub(super) fields: &'a [FieldFormat],
    pub(super) machine: Machine,
    /// Number of open brackets and prefixes.
    depth: usize,
    /// Height of the last expression read.
    height: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(tokens: &'a [Token<'a>], fields: &'a [FieldFormat], machine: Machine) -> Parser<'a> {
        Parser { tokens, fields, machine, depth: 0, height: 0 }
    }

    /// All expressions, separated by commas, up to the end.
    pub(super) fn list(mut self) -> Option<Vec<Expr>> {
        let mut list = Vec::new();
        while !self.tokens.is_empty() {
            list.push(self.expr()?);
            if !self.tokens.is_empty() {
                self.mark(",")?;
            }
        }
        Some(list)
    }

    fn expr(&mut self) -> Option<Expr> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let condition = self.binary(0)?;
        let expr = match self.accept("?") {
            false => condition,
            true => {
                let height = self.height;
                let yes = self.expr()?;
                self.grow(height)?;
                let height = self.height;
                self.mark(":")?;
                let no = self.expr()?;
                self.grow(height)?;
                Expr::Ternary(Box::new([condition, yes, no]))
            }
        };
        self.depth -= 1;
        Some(expr)
    }

    fn binary(&mut self, level: usize) -> Option<Expr> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.accept(operator)) {
            let height = self.height;
            left = Expr::Binary(operator, Box::new(left), Box::new(self.binary(level + 1)?));
            self.grow(height)?;
        }
        Some(left)
    }

    /// Makes the last expression part of a larger one, next to a part of height `beside`.
    fn grow(&mut self, beside: usize) -> Option<()> {
        self.height = self.height.max(beside) + 1;
        (self.height <= MAX_HEIGHT).then_some(())
    }

    fn unary(&mut self) -> Option<Expr> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let expr = self.prefixed()?;
        self.depth -= 1;
        self.grow(0)?;
        self.postfix(expr)
    }

    fn prefixed(&mut self) -> Option<Expr> {
        for (mark, unary) in [("-", Unary::Minus), ("!", Unary::Not), ("~", Unary::Invert)] {
            if self.accept(mark) {
                return Some(Expr::Unary(unary, Box::new(self.unary()?)));
            }
        }
        if self.accept("+") || self.accept("&") {
            // The address of a field denotes its bytes, like the field itself if it is an array.
            return self.unary();
        }
        if self.accept("*") {
            return Some(Expr::Deref(Box::new(self.unary()?)));
        }
        if let Some(c_type) = self.cast() {
            return Some(Expr::Cast(c_type, Box::new(self.unary()?)));
        }
        self.primary()
    }

    fn postfix(&mut self, mut expr: Expr) -> Option<Expr> {
        if expr == Expr::Record && self.accept("->") {
            expr = self.field()?;
        }
        while self.accept("[") {
            let height = self.height;
            let index = self.expr()?;
            self.grow(height)?;
            self.mark("]")?;
            expr = Expr::Index(Box::new(expr), Box::new(index));
        }
        Some(expr)
    }

    fn primary(&mut self) -> Option<Expr> {
        if self.accept("(") {
            let expr = self.expr()?;
            self.mark(")")?;
            return Some(expr);
        }
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        self.height = 1;
        match first {
            Token::Number(number, unsigned) => Some(Expr::Number(*number, *unsigned)),
            Token::Text(text) => {
                let mut text = text.clone();
                while let Some((Token::Text(more), rest)) = self.tokens.split_first() {
                    text.push_str(more);
                    self.tokens = rest;
                }
                Some(Expr::Text(text))
            }
            Token::Word("REC") => Some(Expr::Record),
            Token::Word("sizeof") => self.size_of(),
            Token::Word(function) if self.accept("(") => {
                let call = self.call(function)?;
                self.mark(")")?;
                Some(call)
            }
            Token::Word("true") => Some(Expr::Number(1, false)),
            Token::Word("false" | "NULL") => Some(Expr::Number(0, false)),
            Token::Word(_) => Some(Expr::Unknown),
            Token::Mark(_) => None,
        }
    }

    fn field(&mut self) -> Option<Expr> {
        let name = self.word()?;
        if let Some(field) = self.fields.iter().find(|f| f.name == name) {
            return Some(Expr::Field(FieldLocation::of(field, self.machine)?));
        }
        // The word with the position of a located text.
        let located = name.strip_prefix("__data_loc_")?;
        let field = self.fields.iter().find(|f| f.name == located)?;
        Some(Expr::Field(FieldLocation::of_word(field, self.machine)))
    }

    fn size_of(&mut self) -> Option<Expr> {
        let before = self.tokens;
        if let Some(c_type) = self.cast() {
            let size = if c_type.pointer { self.machine.long_size } else { c_type.size };
            return (size > 0).then_some(Expr::Number(i64::from(size), true));
        }
        self.tokens = before;
        self.mark("(")?;
        let expr = self.expr()?;
        self.mark(")")?;
        match expr {
            Expr::Field(location) => Some(Expr::Number(i64::from(location.size), true)),
            _ => None,
        }
    }

    fn call(&mut self, function: &str) -> Option<Expr> {
        Some(match function {
            "__get_str"
            | "__get_rel_str"
            | "__get_dynamic_array"
            | "__get_rel_dynamic_array"
            | "__get_sockaddr"
            | "__get_rel_sockaddr" => Expr::Dynamic(self.place()?),
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => Expr::DynamicLen(self.place()?),
            "__get_bitmask" | "__get_rel_bitmask" => Expr::Bitmask(self.place()?),
            "__get_cpumask" | "__get_rel_cpumask" => Expr::Cpumask(self.place()?),
            "__print_symbolic" | "__print_symbolic_u64" => {
                let value = self.expr()?;
                Expr::Symbols(Box::new(value), self.pairs()?)
            }
            "__print_flags" | "__print_flags_u64" => {
                let value = self.expr()?;
                self.mark(",")?;
                let between = self.text()?;
                Expr::Flags(Box::new(value), between, self.pairs()?)
            }
            "__print_hex" => Expr::Hex(Box::new(self.two()?), " "),
            "__print_hex_str" => Expr::Hex(Box::new(self.two()?), ""),
            "__print_array" => {
                let [array, count] = self.two()?;
                let height = self.height;
                self.mark(",")?;
                let size = self.expr()?;
                self.grow(height)?;
                Expr::Array(Box::new([array, count, size]))
            }
            "__builtin_expect" => {
                let [value, _] = self.two()?;
                value
            }
            _ => return None,
        })
    }

    fn two(&mut self) -> Option<[Expr; 2]> {
        let first = self.expr()?;
        let height = self.height;
        self.mark(",")?;
        let second = self.expr()?;
        self.grow(height)?;
        Some([first, second])
    }

    /// `, { 0, "HI" }, …` up to the closing bracket.
    fn pairs(&mut self) -> Option<Vec<(Expr, String)>> {
        let mut pairs = Vec::new();
        let mut height = self.height;
        while self.accept(",") {
            if !self.accept("{") {
                return None;
            }
            let value = self.expr()?;
            height = height.max(self.height);
            self.mark(",")?;
            // A null pointer as name ends the kernel's list.
            if let Expr::Text(name) = self.expr()? {
                pairs.push((value, name));
            }
            self.accept(",");
            self.mark("}")?;
        }
        self.grow(height)?;
        Some(pairs)
    }

    fn place(&mut self) -> Option<FieldLocation> {
        let name = self.word()?;
        FieldLocation::of(self.fields.iter().find(|f| f.name == name)?, self.machine)
    }

    /// A type in brackets, if it comes next.
    fn cast(&mut self) -> Option<CType> {
        let before = self.tokens;
        let c_type = self.bracketed_type();
        if c_type.is_none() {
            self.tokens = before;
        }
        c_type
    }

    fn bracketed_type(&mut self) -> Option<CType> {
        self.mark("(")?;
        let mut words = Vec::new();
        while let Some((Token::Word(word), rest)) = self.tokens.split_first() {
            words.push(*word);
            self.tokens = rest;
        }
        let mut text = words.join(" ");
        while self.accept("*") {
            text.push('*');
        }
        self.mark(")")?;
        let operand = matches!(self.tokens.first(), Some(Token::Word(_) | Token::Number(..)));
        let two_operands = operand && words.len() == 1 && words != ["REC"];
        let is_type = text.contains('*') || CType::is_type(&words, self.machine) || two_operands;
        (is_type && !words.is_empty()).then(|| CType::parse(&text, self.machine))
    }

    fn text(&mut self) -> Option<String> {
        match self.primary()? {
            Expr::Text(text) => Some(text),
            _ => None,
        }
    }

    fn word(&mut self) -> Option<&'a str> {
        let (Token::Word(word), rest) = self.tokens.split_first()? else { return None };
        self.tokens = rest;
        Some(word)
    }

    fn mark(&mut self, mark: &str) -> Option<()> {
        self.accept(mark).then_some(())
    }

    fn accept(&mut self, mark: &str) -> bool {
        let Some((Token::Mark(found), rest)) = self.tokens.split_first() else { return false };
        let takes = *found == mark;
        if takes {
            self.tokens = rest;
        }
        takes
    }
}
