//! A position in a list of tokens and the small things every text form is made of: names, numbers, strings, types. What
//! a graph or a kernel looks like is said elsewhere.

use super::lexer::{Lexed, Token, lex, unescape};
use crate::diag::{Diag, Loc, Span};
use crate::types::{DType, Type};

/// Most brackets, regions or operators inside each other.
pub(crate) const DEPTH: usize = 24;

/// Most axes of a type.
pub(crate) const RANK: usize = 64;

/// Reads tokens one after another.
pub struct Cursor<'t> {
    tokens: Vec<Lexed<'t>>,
    at: usize,
    /// Nesting of what is being read; see [`Cursor::nested`].
    depth: usize,
    errors: Vec<Diag>,
}

impl<'t> Cursor<'t> {
    /// At the start of `text`. What is no token is reported by [`Cursor::end`].
    pub fn new(text: &'t str) -> Cursor<'t> {
        let (tokens, errors) = lex(text);
        Cursor { tokens, at: 0, depth: 0, errors }
    }

    /// Adds an error and goes on.
    pub(crate) fn report(&mut self, d: Diag) {
        self.errors.push(d);
    }

    /// Every error so far, in text order.
    pub fn take_errors(&mut self) -> Vec<Diag> {
        let mut errors = std::mem::take(&mut self.errors);
        errors.sort_by_key(|d| d.at.span.map_or(usize::MAX, |s| s.start));
        errors
    }

    /// The token at hand.
    pub fn peek(&self) -> Token<'t> {
        self.peek_at(0)
    }

    /// The token `n` further on.
    pub(crate) fn peek_at(&self, n: usize) -> Token<'t> {
        self.tokens.get(self.at + n).map_or(Token::End, |t| t.token)
    }

    /// Place of the token at hand.
    pub fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(Span::default(), |t| t.span)
    }

    /// Place from `start` to the token just read.
    pub(crate) fn span_since(&self, start: Span) -> Span {
        let end = self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(start.end, |t| t.span.end);
        Span { start: start.start, end: end.max(start.start) }
    }

    /// Takes the token at hand; stays at the end.
    // no iterator: there is always a token, the last one again and again
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Token<'t> {
        let t = self.peek();
        if t != Token::End {
            self.at += 1;
        }
        t
    }

    /// Takes `c` if it is at hand.
    pub fn eat(&mut self, c: char) -> bool {
        self.eat_token(Token::Punct(c))
    }

    pub(crate) fn eat_token(&mut self, t: Token<'_>) -> bool {
        let hit = self.peek() == t;
        if hit {
            self.next();
        }
        hit
    }

    /// Takes the word `word` if it is at hand.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let hit = self.at_word(word);
        if hit {
            self.next();
        }
        hit
    }

    pub(crate) fn at_word(&self, word: &str) -> bool {
        self.peek() == Token::Ident(word)
    }

    /// Takes `c` or fails.
    pub fn expect(&mut self, c: char) -> Result<(), Diag> {
        self.expect_token(Token::Punct(c))
    }

    pub(crate) fn expect_token(&mut self, t: Token<'_>) -> Result<(), Diag> {
        if self.eat_token(t) { Ok(()) } else { Err(self.wanted(&t.to_string())) }
    }

    /// Takes the word `word` or fails.
    pub fn expect_word(&mut self, word: &str) -> Result<(), Diag> {
        if self.eat_word(word) { Ok(()) } else { Err(self.wanted(&format!("`{word}`"))) }
    }

    /// The error that something else than `what` is at hand.
    pub fn wanted(&self, what: &str) -> Diag {
        self.fail("E-TXT-001", format!("{} where {what} is wanted", self.peek()))
    }

    /// An error at the token at hand.
    pub fn fail(&self, code: &'static str, message: impl Into<String>) -> Diag {
        Diag::error(code, message).at(&Loc::at(self.span()))
    }

    /// Runs `f` one level deeper; too many levels are an error.
    pub fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Diag>) -> Result<T, Diag> {
        if self.depth >= DEPTH {
            return Err(self.fail("E-TXT-003", format!("nested more than {DEPTH} deep")));
        }
        self.depth += 1;
        let r = f(self);
        self.depth -= 1;
        r
    }

    /// `item, item, ... close` with the opening bracket already taken; a comma before `close` is allowed.
    pub fn list<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T, Diag>,
    ) -> Result<Vec<T>, Diag> {
        let mut out = Vec::new();
        while !self.eat(close) {
            out.push(item(self)?);
            if !self.eat(',') {
                self.expect(close).map_err(|_| self.wanted(&format!("`,` or `{close}`")))?;
                break;
            }
        }
        Ok(out)
    }

    /// A name.
    pub fn ident(&mut self, what: &str) -> Result<&'t str, Diag> {
        match self.peek() {
            Token::Ident(s) => {
                self.next();
                Ok(s)
            }
            _ => Err(self.wanted(what)),
        }
    }

    /// A string, its escapes replaced.
    pub fn string(&mut self, what: &str) -> Result<String, Diag> {
        let Token::Str(raw) = self.peek() else { return Err(self.wanted(what)) };
        let text = unescape(raw).map_err(|m| self.fail("E-TXT-002", m))?;
        self.next();
        Ok(text)
    }

    /// A name, or a string for names that are not plain.
    pub fn name(&mut self, what: &str) -> Result<String, Diag> {
        match self.peek() {
            Token::Ident(s) => {
                self.next();
                Ok(s.to_string())
            }
            _ => self.string(what),
        }
    }

    /// An integer with optional sign that fits `T`.
    pub fn int<T: TryFrom<i128>>(&mut self, what: &str) -> Result<T, Diag> {
        let minus = self.peek() == Token::Punct('-') && matches!(self.peek_at(1), Token::Number(_));
        if minus {
            self.next();
        }
        let Token::Number(s) = self.peek() else { return Err(self.wanted(what)) };
        let v = s.parse::<i128>().ok().map(|v| if minus { -v } else { v }).and_then(|v| T::try_from(v).ok());
        let v = v.ok_or_else(|| self.fail("E-TXT-010", format!("{s} is not {what}, or is too large")))?;
        self.next();
        Ok(v)
    }

    /// An element type.
    pub fn dtype(&mut self) -> Result<DType, Diag> {
        let Token::Ident(s) = self.peek() else { return Err(self.wanted("an element type")) };
        let Ok(d) = s.parse() else {
            let all: Vec<&str> = DType::all().map(DType::name).collect();
            return Err(self
                .fail("E-TXT-001", format!("`{s}` is no element type"))
                .help(format!("known: {}", all.join(" "))));
        };
        self.next();
        Ok(d)
    }

    /// A tensor type such as `f32[n, 4]`.
    pub fn ty(&mut self) -> Result<Type, Diag> {
        let dtype = self.dtype()?;
        let start = self.span();
        self.expect('[')?;
        let shape = self.list(']', Cursor::dim)?;
        super::dims::check_product(&shape)
            .map_err(|m| Diag::error("E-TXT-003", m).at(&Loc::at(self.span_since(start))))?;
        Ok(Type::new(dtype, shape))
    }

    /// Fails unless everything was read and nothing was reported.
    pub fn end(&mut self) -> Result<(), Diag> {
        if self.peek() != Token::End {
            let d = self.wanted("the end of the text");
            self.report(d);
        }
        match self.take_errors().into_iter().next() {
            Some(d) => Err(d),
            None => Ok(()),
        }
    }

    /// True from `n` errors on: enough to stop.
    pub(crate) fn has_errors(&self, n: usize) -> bool {
        self.errors.len() >= n
    }

    /// From token number `start`, skips to the next value or word that begins a line (past the first token) and is not
    /// inside braces opened on the way, or to a closing brace.
    pub(crate) fn skip_statement(&mut self, start: usize) {
        self.at = start;
        let mut open = 0usize;
        while self.peek() != Token::End {
            let begins = self.tokens.get(self.at).is_some_and(|t| t.first)
                && matches!(self.peek(), Token::Value(_) | Token::Ident(_));
            if open == 0 && ((begins && self.at > start) || self.peek() == Token::Punct('}')) {
                return;
            }
            match self.next() {
                Token::Punct('{') => open += 1,
                Token::Punct('}') => open = open.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// From the token at hand, skips to the next of these words that begins a line (past token number `start`).
    pub(crate) fn skip_item(&mut self, start: usize, words: &[&str]) {
        while self.peek() != Token::End {
            let begins = self.tokens.get(self.at).is_some_and(|t| t.first);
            if begins && self.at > start && words.iter().any(|w| self.at_word(w)) {
                return;
            }
            self.next();
        }
    }

    /// Goes back to token number `at`.
    pub(crate) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Number of the token at hand.
    pub(crate) fn position(&self) -> usize {
        self.at
    }
}
