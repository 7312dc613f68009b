//! Reading expressions and statements.
//!
//! ```text
//! statement  = sum [ relation sum [ relation sum ] | "within" percent "of" sum
//!                  | ( "falls" | "rises" ) "over" axis ] [ "for" condition { "and" condition } ]
//! relation   = "<" | "<=" | "=" | ">=" | ">" | "<<" | ">>"
//! sum        = product { ( "+" | "-" ) product }
//! product    = sign { ( "*" | "/" ) sign }
//! sign       = { "-" } chosen
//! chosen     = plain { "[" condition { "," condition } "]" }
//! plain      = number | quantity | percent | "(" sum ")" | function "(" sum { "," sum } ")" | name
//!            | "paper" "." name | ( "flow" | "link" ) "." who "." [ "bins" "." ] column
//! who        = "*" | name | text | "{" name { "," name } "}"
//! condition  = axis ( "=" | "<" | "<=" | ">" | ">=" ) coordinate | axis "in" "[" coordinate { "," coordinate } "]"
//! ```
//!
//! A general evaluator would have given the arithmetic, which is the least of it: what is
//! calculated with are tables over the points of sweeps, with samples over seeds behind them, and
//! mistakes have to be shown where they stand in a TOML file. Of those to be had, evalexpr is under
//! the AGPL, fasteval was last released in 2020, and rhai is a programming language of its own,
//! whose scripts would have to be checked by running them.

use std::ops::Range;

use comity_congestion::table::nearest;

use super::coordinate::Coordinate;
use super::expression::{
    Claimed, Column, Condition, Expression, FUNCTIONS, Kind, Operator, Relation, Statement, Table,
    Test,
};
use super::fault::{Fault, Faulty};

/// How deep parentheses may go.
const DEEPEST: usize = 50;

/// How many words, numbers and signs an expression may have, so that no tree of them exhausts the
/// stack.
const LONGEST: usize = 1_000;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Quantity(Coordinate),
    Word(String),
    Text(String),
    Sign(&'static str),
    End,
}

/// The signs, longer ones before those that they begin with.
const SIGNS: &[&str] = &[
    "<=", ">=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "(", ")", "[", "]", "{", "}", ",",
    ".",
];

/// Reads an expression that has to take up the whole text.
pub(super) fn expression(text: &str) -> Result<Expression, Faulty> {
    let mut parser = Parser::new(text)?;
    let expression = parser.sum()?;
    parser.end()?;
    Ok(expression)
}

/// Reads a statement that has to take up the whole text.
pub(super) fn statement(text: &str) -> Result<Statement, Faulty> {
    let mut parser = Parser::new(text)?;
    let statement = parser.statement()?;
    parser.end()?;
    Ok(statement)
}

fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, Faulty> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = if first.is_ascii_digit() {
            number(rest, at)?
        } else if first.is_alphabetic() || first == '_' {
            let length = length(|c| c.is_alphanumeric() || c == '_');
            (
                Token::Word(rest.get(..length).unwrap_or_default().into()),
                length,
            )
        } else if first == '"' || first == '\'' {
            let inside = rest.get(1..).unwrap_or_default();
            let Some(length) = inside.find(first) else {
                let found = format!("a string without its closing {first}");
                let expected = "a string between two quotation marks";
                let fault = Fault::Unexpected { found, expected };
                return Err(Faulty::new(&(at..text.len()), fault));
            };
            let content = inside.get(..length).unwrap_or_default();
            (Token::Text(content.into()), length + 2)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            let fault = Fault::Unexpected {
                found: format!("`{first}`"),
                expected: "a number, a name or one of + - * / ( ) [ ] < > =",
            };
            return Err(Faulty::new(&(at..at + first.len_utf8()), fault));
        };
        if tokens.len() == LONGEST {
            return Err(Faulty::new(&(at..text.len()), Fault::TooLong));
        }
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

/// A number, with a unit or a percent sign behind it where there is one; and its length.
fn number(rest: &str, at: usize) -> Result<(Token, usize), Faulty> {
    let digits = rest
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(rest.len());
    let after = rest.get(digits..).unwrap_or_default();
    let power = after
        .strip_prefix(['e', 'E'])
        .map(|power| power.strip_prefix(['-', '+']).unwrap_or(power))
        .map_or(0, |power| {
            let length = power.len() - power.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if length == 0 {
                0
            } else {
                after.len() - power.len() + length
            }
        });
    let plain = digits + power;
    let unit = rest
        .get(plain..)
        .unwrap_or_default()
        .find(|c: char| !(c.is_alphanumeric() || c == 'µ'))
        .unwrap_or(rest.len() - plain);
    let (text, whole) = (
        rest.get(..plain).unwrap_or_default(),
        rest.get(..plain + unit).unwrap_or_default(),
    );
    let fault = || {
        Faulty::new(
            &(at..at + plain + unit),
            Fault::Unit {
                found: format!("`{whole}`"),
            },
        )
    };
    if unit > 0 {
        let quantity = Coordinate::quantity(whole).ok_or_else(fault)?;
        return Ok((Token::Quantity(quantity), plain + unit));
    }
    let value: f64 = text.replace('_', "").parse().map_err(|_| fault())?;
    if rest
        .get(plain..)
        .is_some_and(|after| after.starts_with('%'))
    {
        return Ok((Token::Number(value / 100.0), plain + 1));
    }
    Ok((Token::Number(value), plain))
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn new(text: &str) -> Result<Self, Faulty> {
        Ok(Self {
            tokens: tokens(text)?,
            at: 0,
            depth: 0,
        })
    }

    fn peek(&self) -> (&Token, Range<usize>) {
        match self.tokens.get(self.at).or(self.tokens.last()) {
            Some((token, range)) => (token, range.clone()),
            None => (&Token::End, 0..0),
        }
    }

    fn next(&mut self) -> (Token, Range<usize>) {
        let (token, range) = self.peek();
        let token = token.clone();
        self.at += 1;
        (token, range)
    }

    /// Takes the sign, if it comes next.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek().0, Token::Sign(next) if *next == sign);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes the word, if it comes next.
    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek().0, Token::Word(next) if next == word);
        self.at += usize::from(is_next);
        is_next
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T, Faulty> {
        let (token, range) = self.peek();
        let found = match token {
            Token::Number(number) => format!("the number {number}"),
            Token::Quantity(quantity) => format!("the quantity {quantity}"),
            Token::Word(word) => format!("`{word}`"),
            Token::Text(text) => format!("the text '{text}'"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".into(),
        };
        Err(Faulty::new(&range, Fault::Unexpected { found, expected }))
    }

    fn needs(&mut self, sign: &str, expected: &'static str) -> Result<(), Faulty> {
        if self.takes(sign) {
            Ok(())
        } else {
            self.unexpected(expected)
        }
    }

    fn end(&self) -> Result<(), Faulty> {
        match self.peek().0 {
            Token::End => Ok(()),
            _ => self.unexpected("an operator, or nothing more"),
        }
    }

    fn word(&mut self, expected: &'static str) -> Result<(String, Range<usize>), Faulty> {
        match self.peek() {
            (Token::Word(_), _) => match self.next() {
                (Token::Word(word), range) => Ok((word, range)),
                _ => self.unexpected(expected),
            },
            _ => self.unexpected(expected),
        }
    }

    fn statement(&mut self) -> Result<Statement, Faulty> {
        let first = self.sum()?;
        let (subject, claim) = if self.takes_word("within") {
            let share = match self.next() {
                (Token::Number(share), _) => share,
                _ => {
                    self.at -= 1;
                    return self.unexpected("a share such as 10%");
                }
            };
            if !self.takes_word("of") {
                return self.unexpected("`of`");
            }
            (first, Claimed::Within(share, self.sum()?))
        } else if self.takes_word("falls") {
            (first, self.monotone(false)?)
        } else if self.takes_word("rises") {
            (first, self.monotone(true)?)
        } else {
            self.comparison(first)?
        };
        let mut conditions = Vec::new();
        if self.takes_word("for") {
            conditions.push(self.condition()?);
            while self.takes_word("and") {
                conditions.push(self.condition()?);
            }
        }
        Ok(Statement {
            subject,
            claim,
            conditions,
        })
    }

    fn monotone(&mut self, rises: bool) -> Result<Claimed, Faulty> {
        if !self.takes_word("over") {
            return self.unexpected("`over`");
        }
        let (axis, axis_range) = self.word("the name of an axis")?;
        Ok(Claimed::Monotone {
            axis,
            axis_range,
            rises,
        })
    }

    /// What follows the first expression of a comparison, and which of all is its subject: the one
    /// in the middle of three, and of two the one on the left unless that is a plain number.
    fn comparison(&mut self, first: Expression) -> Result<(Expression, Claimed), Faulty> {
        let Some(relation) = self.relation() else {
            return Ok((first, Claimed::Nothing));
        };
        let second = self.sum()?;
        if let Some(other) = self.relation() {
            let third = self.sum()?;
            let bounds = vec![(relation.flipped(), first), (other, third)];
            return Ok((second, Claimed::Compares(bounds)));
        }
        Ok(match first.kind {
            Kind::Number(_) => (second, Claimed::Compares(vec![(relation.flipped(), first)])),
            _ => (first, Claimed::Compares(vec![(relation, second)])),
        })
    }

    fn relation(&mut self) -> Option<Relation> {
        const ALL: [Relation; 7] = [
            Relation::Below,
            Relation::AtMost,
            Relation::Equal,
            Relation::AtLeast,
            Relation::Above,
            Relation::WhollyBelow,
            Relation::WhollyAbove,
        ];
        ALL.into_iter().find(|relation| self.takes(relation.sign()))
    }

    fn condition(&mut self) -> Result<Condition, Faulty> {
        let (axis, start) = self.word("the name of an axis")?;
        let test = if self.takes_word("in") {
            self.needs("[", "`[`")?;
            let mut list = vec![self.coordinate()?];
            while self.takes(",") {
                list.push(self.coordinate()?);
            }
            self.needs("]", "`,` or `]`")?;
            Test::OneOf(list)
        } else {
            match self.relation() {
                Some(Relation::Equal) => Test::Is(self.coordinate()?),
                Some(Relation::WhollyAbove | Relation::WhollyBelow) => {
                    self.at -= 1;
                    return self.unexpected("`=`, `<`, `<=`, `>`, `>=` or `in`");
                }
                Some(relation) => Test::Compares(relation, self.coordinate()?),
                None => return self.unexpected("`=`, `<`, `<=`, `>`, `>=` or `in`"),
            }
        };
        let end = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        let end = end.map_or(start.end, |(_, range)| range.end);
        Ok(Condition {
            range: start.start..end,
            axis,
            test,
        })
    }

    fn coordinate(&mut self) -> Result<Coordinate, Faulty> {
        let minus = self.takes("-");
        match self.peek().0.clone() {
            Token::Number(number) => {
                self.at += 1;
                Ok(Coordinate::number(if minus { -number } else { number }))
            }
            Token::Quantity(quantity) if !minus => {
                self.at += 1;
                Ok(quantity)
            }
            Token::Word(word) if !minus => {
                self.at += 1;
                Ok(match word.as_str() {
                    "true" => Coordinate::from(&crate::results::AxisValue::Boolean(true)),
                    "false" => Coordinate::from(&crate::results::AxisValue::Boolean(false)),
                    word => Coordinate::text(word),
                })
            }
            Token::Text(text) if !minus => {
                self.at += 1;
                Ok(Coordinate::text(&text))
            }
            _ => self.unexpected("a value of the axis"),
        }
    }

    fn sum(&mut self) -> Result<Expression, Faulty> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Faulty::new(&self.peek().1, Fault::TooDeep));
        }
        let mut left = self.product()?;
        loop {
            let operator = if self.takes("+") {
                Operator::Add
            } else if self.takes("-") {
                Operator::Subtract
            } else {
                self.depth -= 1;
                return Ok(left);
            };
            left = binary(operator, left, self.product()?);
        }
    }

    fn product(&mut self) -> Result<Expression, Faulty> {
        let mut left = self.sign()?;
        loop {
            let operator = if self.takes("*") {
                Operator::Multiply
            } else if self.takes("/") {
                Operator::Divide
            } else {
                return Ok(left);
            };
            left = binary(operator, left, self.sign()?);
        }
    }

    fn sign(&mut self) -> Result<Expression, Faulty> {
        let start = self.peek().1.start;
        let mut signs = 0;
        while self.takes("-") {
            signs += 1;
        }
        let inner = self.chosen()?;
        Ok(match (inner.kind, signs % 2) {
            (Kind::Number(number), 1) => Expression {
                range: start..inner.range.end,
                kind: Kind::Number(-number),
            },
            (kind, 1) => Expression {
                range: start..inner.range.end,
                kind: Kind::Minus(Box::new(Expression {
                    range: inner.range,
                    kind,
                })),
            },
            (kind, _) => Expression {
                range: inner.range,
                kind,
            },
        })
    }

    fn chosen(&mut self) -> Result<Expression, Faulty> {
        let mut inner = self.plain()?;
        while self.takes("[") {
            let mut conditions = vec![self.condition()?];
            while self.takes(",") {
                conditions.push(self.condition()?);
            }
            let end = self.peek().1.end;
            self.needs("]", "`,` or `]`")?;
            inner = Expression {
                range: inner.range.start..end,
                kind: Kind::Select(Box::new(inner), conditions),
            };
        }
        Ok(inner)
    }

    fn plain(&mut self) -> Result<Expression, Faulty> {
        let (token, range) = self.peek();
        match token.clone() {
            Token::Number(number) => {
                self.at += 1;
                Ok(Expression {
                    range,
                    kind: Kind::Number(number),
                })
            }
            Token::Quantity(quantity) => {
                self.at += 1;
                let value = quantity.value().unwrap_or(f64::NAN);
                Ok(Expression {
                    range,
                    kind: Kind::Number(value),
                })
            }
            Token::Sign("(") => {
                self.at += 1;
                let inner = self.sum()?;
                let end = self.peek().1.end;
                self.needs(")", "an operator or `)`")?;
                Ok(Expression {
                    range: range.start..end,
                    kind: inner.kind,
                })
            }
            Token::Word(word) => {
                self.at += 1;
                self.named(word, range)
            }
            _ => self.unexpected("a number, a name or `(`"),
        }
    }

    /// What begins with a word: a function, a column, a number of the paper, or a name.
    fn named(&mut self, word: String, range: Range<usize>) -> Result<Expression, Faulty> {
        let table = match word.as_str() {
            "flow" => Some(Table::Flow),
            "link" => Some(Table::Link),
            _ => None,
        };
        if self.takes("(") {
            return self.call(&word, &range);
        }
        if self.takes(".") {
            if word == "paper" {
                let (name, end) = self.word("the name of numbers of the paper")?;
                return Ok(Expression {
                    range: range.start..end.end,
                    kind: Kind::Paper(name),
                });
            }
            if let Some(table) = table {
                return self.column(table, range.start);
            }
            let known: Vec<String> = ["flow", "link", "paper"].map(String::from).into();
            let fault = Fault::Unknown {
                what: "table",
                nearest: nearest(&word, known.iter().map(String::as_str)).map(Into::into),
                name: word,
                known,
            };
            return Err(Faulty::new(&range, fault));
        }
        Ok(Expression {
            range,
            kind: Kind::Name(word),
        })
    }

    fn call(&mut self, word: &str, range: &Range<usize>) -> Result<Expression, Faulty> {
        let Some(row) = FUNCTIONS.iter().find(|row| row.name == word) else {
            let known: Vec<String> = FUNCTIONS.iter().map(|row| row.name.into()).collect();
            let fault = Fault::Unknown {
                what: "function",
                name: word.into(),
                nearest: nearest(word, known.iter().map(String::as_str)).map(Into::into),
                known,
            };
            return Err(Faulty::new(range, fault));
        };
        let mut arguments = vec![self.sum()?];
        while self.takes(",") {
            arguments.push(self.sum()?);
        }
        let end = self.peek().1.end;
        self.needs(")", "`,` or `)`")?;
        let range = range.start..end;
        if arguments.len() != row.arguments {
            let fault = Fault::Arguments {
                usage: row.usage,
                found: arguments.len(),
            };
            return Err(Faulty::new(&range, fault));
        }
        Ok(Expression {
            range,
            kind: Kind::Call(row.function, arguments),
        })
    }

    fn column(&mut self, table: Table, start: usize) -> Result<Expression, Faulty> {
        let mut names = Vec::new();
        if self.takes("{") {
            names.push(self.name()?);
            while self.takes(",") {
                names.push(self.name()?);
            }
            self.needs("}", "`,` or `}`")?;
        } else if !self.takes("*") {
            names.push(self.name()?);
        }
        self.needs(".", "`.` and the name of a column")?;
        let mut column = self.word("the name of a column")?;
        let bins = column.0 == "bins" && self.takes(".");
        if bins {
            column = self.word("the name of a column")?;
        }
        let (column, column_range) = column;
        Ok(Expression {
            range: start..column_range.end,
            kind: Kind::Column(Column {
                table,
                names,
                bins,
                column,
                column_range,
            }),
        })
    }

    /// A name that may stand between quotation marks.
    fn name(&mut self) -> Result<(String, Range<usize>), Faulty> {
        match self.peek() {
            (Token::Text(text), range) => {
                let text = text.clone();
                self.at += 1;
                Ok((text, range))
            }
            _ => self.word("a name, `*` or a list such as {a, b}"),
        }
    }
}

fn binary(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression {
        range: left.range.start..right.range.end,
        kind: Kind::Binary(operator, Box::new(left), Box::new(right)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (Fault, String) {
        let faulty = statement(text).expect_err(text);
        let at = text
            .get(faulty.range.clone())
            .unwrap_or_default()
            .to_owned();
        (faulty.fault, at)
    }

    #[test]
    fn products_bind_closer_than_sums_and_equals_from_the_left() {
        let shape = |text: &str| {
            fn show(expression: &Expression) -> String {
                match &expression.kind {
                    Kind::Number(number) => number.to_string(),
                    Kind::Name(name) => name.clone(),
                    Kind::Minus(inner) => format!("-{}", show(inner)),
                    Kind::Binary(operator, left, right) => {
                        format!("({} {operator:?} {})", show(left), show(right))
                    }
                    Kind::Select(inner, conditions) => {
                        format!("{}[{}]", show(inner), conditions.len())
                    }
                    other => format!("{other:?}"),
                }
            }
            show(&expression(text).unwrap())
        };
        assert_eq!(
            shape("1 + 2 * a - 3"),
            "((1 Add (2 Multiply a)) Subtract 3)"
        );
        assert_eq!(shape("8 / 2 / 2"), "((8 Divide 2) Divide 2)");
        assert_eq!(shape("-(a + 1) * --2"), "(-(a Add 1) Multiply 2)");
        assert_eq!(
            shape("a[x = 1, y <= 2][z in [1ms, 2ms]] - 1e3"),
            "(a[2][1] Subtract 1000)"
        );
        assert_eq!(
            shape("10% * 1_000 + 40ms"),
            "((0.1 Multiply 1000) Add 0.04)"
        );
    }

    #[test]
    fn the_subject_of_a_comparison_is_what_is_no_plain_number() {
        let three = statement("0.85 <= F[n = 50] < 1.2").unwrap();
        assert!(matches!(three.subject.kind, Kind::Select(..)));
        let Claimed::Compares(bounds) = three.claim else {
            panic!()
        };
        assert_eq!(
            (bounds[0].0, bounds[1].0),
            (Relation::AtLeast, Relation::Below)
        );
        let two = statement("1.3 < gain for drop >= 0.2 and cc = 'tcp-real'").unwrap();
        assert_eq!(two.subject.kind, Kind::Name("gain".into()));
        assert_eq!(two.conditions.len(), 2);
        let Claimed::Compares(bounds) = two.claim else {
            panic!()
        };
        assert_eq!(bounds[0].0, Relation::Above);
        assert!(matches!(statement("x").unwrap().claim, Claimed::Nothing));
        assert!(matches!(
            statement("x within 10% of 2.23").unwrap().claim,
            Claimed::Within(share, _) if share == 0.1
        ));
        assert!(matches!(
            statement("J falls over short").unwrap().claim,
            Claimed::Monotone { rises: false, .. }
        ));
    }

    #[test]
    fn columns_name_whose_they_are() {
        let column = |text: &str| match expression(text).unwrap().kind {
            Kind::Column(column) => column,
            other => panic!("{other:?}"),
        };
        let all = column("flow.*.throughput_bps");
        assert!(all.names.is_empty() && !all.bins);
        let two = column("flow.{long, 'short-1'}.bins.sent_packets");
        assert_eq!((two.names[1].0.as_str(), two.bins), ("short-1", true));
        assert_eq!(column("link.bottleneck.utilisation").table, Table::Link);
    }

    #[test]
    fn mistakes_are_where_they_stand() {
        assert_eq!(fault("a + * 2").1, "*");
        assert_eq!(fault("meen(flow.*.x) < 1").1, "meen");
        assert_eq!(
            fault("a < 40mz").0,
            Fault::Unit {
                found: "`40mz`".into()
            }
        );
        assert!(matches!(
            fault("jain(a, b)").0,
            Fault::Arguments { found: 2, .. }
        ));
        assert!(matches!(fault("a ? b").0, Fault::Unexpected { .. }));
        assert_eq!(fault("flaw.x.y").1, "flaw");
        assert_eq!(fault("a < 1 < 2 < 3").1, "<");
        assert_eq!(fault("a[n >> 3]").1, ">>");
        assert_eq!(fault("x within a of 3").1, "a");
        assert_eq!(fault("x['").1, "'");
        assert_eq!(
            fault("").0,
            Fault::Unexpected {
                found: "the end".into(),
                expected: "a number, a name or `(`",
            }
        );
        assert_eq!(fault(&"(".repeat(1_000)).0, Fault::TooDeep);
        assert_eq!(fault(&"1+".repeat(1_000_000)).0, Fault::TooLong);
    }
}
