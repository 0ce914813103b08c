//! Items with names of Rust's library or of the language: those that kernels cannot tell from
//! Rust's, and device types whose names are taken.

use kernel_dsl::prelude::*;

type Fallible<T> = core::result::Result<T, u32>;

mod aliases {
    use super::Fallible as Result;
    use kernel_dsl::prelude::*;

    #[device]
    fn one_type(x: u32) -> Result<u32> {
        Ok(x)
    }
}

mod enums {
    use kernel_dsl::prelude::*;

    pub enum Result {
        Good,
        Bad,
    }

    #[device]
    fn of_the_host(x: u32) -> u32 {
        let found = if x > 3 { Result::Good } else { Result::Bad };
        x
    }

    #[device]
    fn without_types(x: u32) -> u32 {
        let found: Result = other(x);
        x
    }

    fn other(_x: u32) -> Result {
        Result::Good
    }
}

#[device]
#[derive(Clone, Copy)]
struct View {
    at: u32,
}

#[device]
mod types {
    #[derive(Clone, Copy)]
    pub enum Option {
        Nothing,
    }

    pub type Group = u32;
}

fn main() {}
