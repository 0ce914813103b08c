//! The time of expansions in whatever profile this is built with, as JSON; the bench of the same name compares.

mod measure;
#[path = "../../tests/frontend/support.rs"]
mod support;

fn main() -> serde_json::Result<()> {
    println!("{}", serde_json::to_string(&measure::all())?);
    Ok(())
}
