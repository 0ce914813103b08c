//! The page: a fixed document, and an inspection as JSON, from which the document's script draws.

use super::compare::ComparedCode;
use super::model::Inspection;

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Tag before the JSON.
const START: &str = "<script type=\"application/json\" id=\"model\">";
/// Tag after the JSON.
const END: &str = "</script>";

/// Whether the page changes while it is open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Updates {
    Fixed,
    /// The page asks its server for versions after this one.
    Served {
        version: u64,
    },
}

/// Returns the page of an inspection.
pub(super) fn of(inspection: &Inspection, updates: Updates) -> String {
    let served = match updates {
        Updates::Fixed => String::new(),
        Updates::Served { version } => format!(" data-version=\"{version}\""),
    };
    let replaced = |text: &str, name: &str, with: &str| {
        let (before, after) = text.split_once(name).unwrap_or((text, ""));
        format!("{before}{with}{after}")
    };
    let page = replaced(DOCUMENT, "{{served}}", &served);
    let page = replaced(&page, "{{title}}", &escaped(&inspection.report.instance));
    let page = replaced(&page, "{{style}}", STYLE);
    let page = replaced(&page, "{{script}}", SCRIPT);
    replaced(&page, "{{model}}", &format!("{START}{}{END}", json(inspection)))
}

/// Returns an inspection as JSON that a script element can hold.
pub(super) fn json(inspection: &Inspection) -> String {
    // All keys are strings and no serializer of the model fails.
    let json = serde_json::to_string(inspection).unwrap_or_default();
    json.replace('<', "\\u003c")
}

/// Returns the side of a comparison that a page holds.
pub(super) fn read(page: &str) -> Option<ComparedCode> {
    let (_, rest) = page.split_once(START)?;
    let (json, _) = rest.split_once(END)?;
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let name = value["report"]["instance"].as_str()?.to_string();
    Some(ComparedCode { name, ..serde_json::from_value(value).ok()? })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
