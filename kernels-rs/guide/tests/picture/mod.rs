//! Pictures of `kernels inspect` as SVG files, drawn from the page's data as its script draws them.
//! Colors have enough contrast on light and dark pages.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const GOOD: &str = "#2f7de1";
const BAD: &str = "#d62839";
const IDLE: &str = "#80808040";
const TEXT: &str = "#808080";

/// Draws a picture of an instance: `banks`, `sectors` of an access, `tiles` of an output, or
/// `occupancy` by a resource.
pub fn draw(model: &Value, kind: &str, what: &str) -> String {
    let access = || {
        let all = model["accesses"].as_array().expect("the page lists accesses");
        let named = |access: &&Value| access["name"] == what && !access["request"].is_null();
        all.iter().find(named).unwrap_or_else(|| panic!("no access `{what}` was executed"))
    };
    match kind {
        "banks" => banks(access()),
        "sectors" => sectors(access()),
        "tiles" => tiles(model, what),
        "occupancy" => occupancy(model, what),
        other => panic!("unknown picture `{other}`"),
    }
}

/// Returns the offset of each active lane.
fn lanes(access: &Value) -> Vec<(usize, u64)> {
    let lanes = access["request"]["lanes"].as_array().expect("a request has lanes");
    lanes.iter().enumerate().filter_map(|(lane, offset)| Some((lane, offset.as_u64()?))).collect()
}

fn svg(width: u64, height: u64, title: &str, inner: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"9\" role=\"img\">\n<title>{title}</title>\n{inner}</svg>\n"
    )
}

fn rect(out: &mut String, [x, y, w, h]: [u64; 4], fill: &str) {
    let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{fill}\"/>");
}

fn text(out: &mut String, x: u64, y: u64, fill: &str, anchor: &str, content: &dyn std::fmt::Display) {
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\" text-anchor=\"{anchor}\">{content}</text>");
}

/// The words of a bank that a pass accesses, each with its lanes.
type Bank = Vec<(u64, Vec<usize>)>;

/// Draws which lanes access which bank in each pass of a request. A column is a bank.
fn banks(access: &Value) -> String {
    const SIZE: u64 = 17;
    const MAX_WAYS: usize = 4;
    let bytes = access["bytes"].as_u64().unwrap_or(4);
    let at_once = (128 / bytes.max(4)).max(1) as usize;
    let mut passes: BTreeMap<usize, Vec<Bank>> = BTreeMap::new();
    for (lane, offset) in lanes(access) {
        let banks = passes.entry(lane / at_once).or_insert_with(|| vec![Vec::new(); 32]);
        for word in offset / 4..(offset + bytes).div_ceil(4) {
            let entries = &mut banks[(word % 32) as usize];
            match entries.iter_mut().find(|(known, _)| *known == word && access["merged"] == true) {
                Some((_, lanes)) => lanes.push(lane),
                None => entries.push((word, vec![lane])),
            }
        }
    }
    let (mut out, mut y, mut most) = (String::new(), 14, 1);
    for bank in (0..32).step_by(4) {
        text(&mut out, 40 + bank * SIZE, 10, TEXT, "middle", &bank);
    }
    for (pass, banks) in &passes {
        let ways = banks.iter().map(Vec::len).max().unwrap_or(0);
        most = most.max(ways);
        let label = if passes.len() > 1 { format!("pass {}", pass + 1) } else { "lane".to_owned() };
        text(&mut out, 0, y + 12, TEXT, "start", &label);
        for way in 0..ways.min(MAX_WAYS) {
            rect(&mut out, [32, y, 32 * SIZE - 1, SIZE - 1], IDLE);
            for (bank, entries) in banks.iter().enumerate() {
                let x = 32 + bank as u64 * SIZE;
                let Some((_, lanes)) = entries.get(way) else { continue };
                rect(&mut out, [x, y, SIZE - 1, SIZE - 1], if way > 0 { BAD } else { GOOD });
                let label = format!("{}{}", lanes[0], if lanes.len() > 1 { "+" } else { "" });
                text(&mut out, x + 8, y + 11, "#ffffff", "middle", &label);
            }
            y += SIZE;
        }
        if ways > MAX_WAYS {
            text(&mut out, 32, y + 11, TEXT, "start", &format!("… and {} more rows", ways - MAX_WAYS));
            y += SIZE;
        }
        y += 5;
    }
    let conflict = if most == 1 { "no bank conflict".to_owned() } else { format!("{most}-way bank conflict") };
    svg(32 + 32 * SIZE, y, &format!("Banks of {}: {conflict}", name(access)), &out)
}

fn name(access: &Value) -> &str {
    access["name"].as_str().unwrap_or_default()
}

/// Draws the words of each line of 128 bytes that a request touches.
fn sectors(access: &Value) -> String {
    const SIZE: u64 = 14;
    const MAX_LINES: usize = 8;
    let bytes = access["bytes"].as_u64().unwrap_or(4);
    let mut used: BTreeMap<u64, usize> = BTreeMap::new();
    for (lane, offset) in lanes(access) {
        for word in offset / 4..(offset + bytes).div_ceil(4) {
            used.entry(word).or_insert(lane);
        }
    }
    let sectors: BTreeSet<u64> = used.keys().map(|word| word / 8).collect();
    let lines: BTreeSet<u64> = sectors.iter().map(|sector| sector / 4).collect();
    let (mut out, mut y) = (String::new(), 4);
    for line in lines.iter().take(MAX_LINES) {
        text(&mut out, 0, y + 10, TEXT, "start", &(line * 128));
        for word in 0..32 {
            let x = 46 + word * SIZE + word / 8 * 4;
            if word % 8 == 0 {
                let fill = if sectors.contains(&(4 * line + word / 8)) { "#d6283990" } else { IDLE };
                rect(&mut out, [x, y, 8 * SIZE - 1, SIZE - 1], fill);
            }
            if let Some(lane) = used.get(&(32 * line + word)) {
                rect(&mut out, [x, y, SIZE - 1, SIZE - 1], GOOD);
                text(&mut out, x + 6, y + 10, "#ffffff", "middle", lane);
            }
        }
        y += SIZE + 4;
    }
    if lines.len() > MAX_LINES {
        text(&mut out, 46, y + 8, TEXT, "start", &format!("… and {} more lines", lines.len() - MAX_LINES));
        y += 14;
    }
    let title = format!("Sectors of {}: {} of 32 bytes", name(access), sectors.len());
    svg(46 + 32 * SIZE + 16, y + 2, &title, &out)
}

/// Draws the block that stored each part of an output.
fn tiles(model: &Value, array: &str) -> String {
    let all = model["tiles"].as_array().expect("the page lists outputs");
    let tiles = all.iter().find(|tiles| tiles["array"] == array).expect("the output was stored to");
    let cells = tiles["cells"].as_array().expect("an output has cells");
    let width = cells[0].as_array().map_or(1, Vec::len) as u64;
    let size = (440 / width).max(4);
    let mut out = String::new();
    let row = |i: usize| cells[i].as_array().expect("a row").iter().map(Value::as_u64).collect::<Vec<_>>();
    let mut top = 0;
    while top < cells.len() {
        // Equal rows, and equal neighbors in them, are one rectangle.
        let blocks = row(top);
        let height = (top..cells.len()).take_while(|i| row(*i) == blocks).count();
        let mut left = 0;
        for part in blocks.chunk_by(|a, b| a == b) {
            let fill = match part[0] {
                Some(block) => format!("hsl({:.0} 55% 55%)", (block as f64 * 137.508) % 360.0),
                None => IDLE.to_owned(),
            };
            let (width, height) = (part.len() as u64 * size, height as u64 * size);
            rect(&mut out, [left, top as u64 * size, width, height], &fill);
            left += width;
        }
        top += height;
    }
    let title = format!("{array}: {} × {} elements by the block that stored them", tiles["rows"], tiles["columns"]);
    svg(width * size, cells.len() as u64 * size, &title, &out)
}

/// Draws resident warps by the amount of a resource.
fn occupancy(model: &Value, resource: &str) -> String {
    const W: f64 = 420.0;
    const H: f64 = 190.0;
    const LEFT: f64 = 34.0;
    const BOTTOM: f64 = 34.0;
    const TOP: f64 = 8.0;
    let curves = model["occupancy"]["curves"].as_array().expect("the page has curves");
    let curve = curves.iter().find(|curve| curve["resource"] == resource).expect("a resource");
    let most = model["occupancy"]["of"].as_f64().unwrap_or(64.0);
    let point = |point: &Value| (point[0].as_f64().unwrap_or(0.0), point[1].as_f64().unwrap_or(0.0));
    let points: Vec<_> = curve["points"].as_array().expect("points").iter().map(point).collect();
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    let x = |v: f64| LEFT + (W - LEFT - 10.0) * (v - first) / (last - first);
    let y = |v: f64| TOP + (H - TOP - BOTTOM) * (1.0 - v / most);
    let mut path = format!("M{:.1},{:.1}", x(first), y(points[0].1));
    for pair in points.windows(2) {
        if pair[0].1 != pair[1].1 {
            let _ = write!(path, "H{:.1}V{:.1}", x(pair[1].0), y(pair[1].1));
        }
    }
    let _ = write!(path, "H{:.1}", x(last));
    let mut out = format!(
        "<path d=\"M{LEFT},{TOP}V{}H{}\" fill=\"none\" stroke=\"{TEXT}\"/>\n\
         <path d=\"{path}\" fill=\"none\" stroke=\"{GOOD}\" stroke-width=\"2\"/>\n",
        H - BOTTOM,
        W - 10.0
    );
    for (part, anchor) in [(0.0, "start"), (0.5, "middle"), (1.0, "end")] {
        let amount = first + part * (last - first);
        text(&mut out, (LEFT - 5.0) as u64, y(part * most) as u64 + 4, TEXT, "end", &(part * most));
        text(&mut out, x(amount) as u64, (H - BOTTOM) as u64 + 14, TEXT, anchor, &amount.round());
    }
    text(&mut out, W as u64 / 2, H as u64 - 2, TEXT, "middle", &resource);
    let warps = model["occupancy"]["warps"].as_f64().unwrap_or(0.0);
    if let Some(current) = curve["current"].as_f64() {
        let _ = writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"{BAD}\"/>", x(current), y(warps));
        let label = format!("{current}: {warps} warps");
        text(&mut out, x(current) as u64 + 9, (H - BOTTOM) as u64 - 6, TEXT, "start", &label);
    }
    svg(W as u64, H as u64, &format!("Resident warps by {resource}"), &out)
}
