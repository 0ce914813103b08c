//! Prints the time of expansions in the profile of this build, as JSON; the bench of the same name
//! compares profiles.

mod measure;
#[path = "../../tests/frontend/support.rs"]
mod support;

fn main() -> serde_json::Result<()> {
    println!("{}", serde_json::to_string(&measure::all())?);
    Ok(())
}
