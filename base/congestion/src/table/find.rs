//! Finding a row by its name.

use alloc::string::String;
use core::fmt;

use super::names::{OtherName, other_name};
use super::nearest::nearest;
use super::parameters::write_list;
use super::row::Row;
use super::rows::TABLE;

/// The controller called `name`.
///
/// # Errors
/// Returns [`UnknownController`]. It has the nearest known name or, if `name` stands for something
/// else, what to write instead.
pub fn find(name: &str) -> Result<&'static Row, UnknownController> {
    TABLE
        .iter()
        .find(|row| row.name == name)
        .ok_or_else(|| UnknownController {
            name: String::from(name),
            nearest: nearest(name, TABLE.iter().map(|row| row.name)),
            other: other_name(name),
        })
}

/// There is no controller of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController {
    /// The unknown name.
    pub name: String,
    /// The nearest known name, if one is near.
    pub nearest: Option<&'static str>,
    /// What this name stands for, if it is known.
    pub other: Option<OtherName>,
}

impl fmt::Display for UnknownController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no controller {:?}", self.name)?;
        if let Some(other) = self.other {
            return write!(f, ": {}; `comity list` describes each", other.instead);
        }
        match self.nearest {
            Some(nearest) => {
                write!(
                    f,
                    "; did you mean {nearest:?}? `comity list` describes each"
                )
            }
            None => {
                f.write_str("; there are ")?;
                write_list(f, TABLE.iter().map(|row| row.name))?;
                f.write_str("; `comity list` describes each")
            }
        }
    }
}

impl core::error::Error for UnknownController {}
