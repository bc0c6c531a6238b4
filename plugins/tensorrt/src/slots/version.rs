//! Version of a TensorRT library, from the number that `getInferLibVersion` returns.

use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }

    /// `8601` is 8.6.1, `101601` is 10.16.1: majors below 10 have one digit for the minor version,
    /// the others two.
    pub fn from_number(number: i32) -> Option<Version> {
        let n = u32::try_from(number).ok()?;
        match n {
            1_000..10_000 => Some(Version::new(n / 1_000, n / 100 % 10, n % 100)),
            100_000.. => Some(Version::new(n / 10_000, n / 100 % 100, n % 100)),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
