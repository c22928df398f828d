//! Changes to a stored value, as an input tells them.

use serde_json::{Map, Number, Value, json};

/// Changes of one input.
const CHANGE_COUNT_MAX: usize = 64;
/// Elements of a list that was repeated.
const LENGTH_MAX: usize = 4096;

/// Numbers at the edges of their types, and some that make others.
const NUMBERS: [f64; 18] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    1e-9,
    1e-300,
    5e-324,
    1e15,
    1e300,
    f64::MAX,
    f64::MIN,
    1e19,
    4_294_967_296.0,
    0.999_999,
    100.0,
    86_400.0,
];
const INTEGERS: [i128; 8] =
    [0, 1, -1, u64::MAX as i128, i64::MAX as i128, i64::MIN as i128, u32::MAX as i128, 1 << 32];

const TEXTS: [&str; 24] = [
    "",
    "<b>",
    "</td><script>",
    "\u{1b}[2J\u{9b}8m",
    "a\r\nb\tc",
    "\"'&amp;,;",
    "\u{202e}x",
    "none",
    "plain",
    "mac",
    "nts",
    "ke",
    "mix",
    "antp-time",
    "antp-full",
    "transfer",
    "key-exchange",
    "run",
    "closed",
    "constant",
    "search",
    "server",
    "authentick-load/1",
    "authentick-load/2",
];

/// The base with the changes of `edits`. Each has two octets for the place, one for what is done, and one that says
/// how. `is_mended`: counts add up afterwards.
#[must_use]
pub fn changed(base: &Value, is_mended: bool, edits: &[u8]) -> Value {
    let mut value = base.clone();
    let mut input = edits;
    for _ in 0..CHANGE_COUNT_MAX {
        let Some((&[high, low, what, how], rest)) = input.split_first_chunk::<4>() else { break };
        input = rest;
        let count = node_count(&value);
        let place = usize::from(u16::from_be_bytes([high, low])) % count;
        let other = usize::from(how) * 7 % count;
        let other = (what & 15 == 8).then(|| node(&mut value, &mut { other }).cloned()).flatten();
        let Some(node) = node(&mut value, &mut { place }) else { break };
        change(node, what & 15, how, other, &mut input);
    }
    if is_mended {
        mend(&mut value);
    }
    value
}

fn change(node: &mut Value, what: u8, how: u8, other: Option<Value>, input: &mut &[u8]) {
    let index = usize::from(how);
    match what {
        0 | 1 => *node = json!(NUMBERS[index % NUMBERS.len()]),
        2 => {
            let integer = INTEGERS[index % INTEGERS.len()];
            *node = Number::from_i128(integer).map_or(Value::Null, Value::Number);
        }
        3 | 4 => nudge(node, how),
        5 => *node = Value::Null,
        6 => *node = TEXTS[index % TEXTS.len()].into(),
        7 => {
            let (text, rest) = input.split_at((index & 31).min(input.len()));
            *input = rest;
            *node = String::from_utf8_lossy(text).into();
        }
        8 => *node = other.unwrap_or_default(),
        9 => remove(node, index),
        10 => {
            if let Value::Array(values) = node
                && let Some(value) = values.get(index % values.len().max(1)).cloned()
            {
                values.insert(index % values.len(), value);
            }
        }
        11 => {
            if let Value::Array(values) = node
                && values.len() << (how & 3) <= LENGTH_MAX
            {
                *values = vec![std::mem::take(values); 1 << (how & 3)].concat();
            }
        }
        12 => {
            if let Value::Array(values) = node {
                values.clear();
            }
        }
        13 => *node = Value::Bool(how & 1 != 0),
        14 => *node = json!(index),
        _ => {
            if let Value::Object(fields) = node {
                fields.insert(TEXTS[index % TEXTS.len()].to_owned(), json!(index));
            }
        }
    }
}

/// A number of the same type, somewhat different.
fn nudge(node: &mut Value, how: u8) {
    let Value::Number(number) = &*node else { return };
    let by = i64::from(how) - 128;
    let nudged = match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => json!(integer.wrapping_add(by)),
        (None, Some(float)) => json!(float * 10f64.powi(by as i32 / 8)),
        (None, None) => return,
    };
    // What is no number any more would be null.
    if nudged.is_number() {
        *node = nudged;
    }
}

fn remove(node: &mut Value, index: usize) {
    match node {
        Value::Object(fields) => {
            if let Some(name) = fields.keys().nth(index % fields.len().max(1)).cloned() {
                fields.remove(&name);
            }
        }
        Value::Array(values) if !values.is_empty() => {
            values.remove(index % values.len());
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn node_count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(node_count).sum(),
        Value::Object(fields) => fields.values().map(node_count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The value that stands at this place when all are counted from the outside in.
fn node<'a>(value: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(values) => values.iter_mut().find_map(|value| node(value, place)),
        Value::Object(fields) => fields.values_mut().find_map(|value| node(value, place)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Makes the counts of every tally add up, whatever its parts are; distributions that do not fit them are left out.
fn mend(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(mend),
        Value::Object(fields) => {
            fields.values_mut().for_each(mend);
            if fields.contains_key("scheduled") && fields.contains_key("causes") {
                mend_tally(fields);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn mend_tally(fields: &mut Map<String, Value>) {
    let count = |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or(0).min(u64::MAX / 8);
    let [skipped, answered, lost, invalid] = ["skipped", "answered", "lost", "invalid"].map(count);
    let sent = answered + lost + invalid;
    for (name, count) in [("skipped", skipped), ("answered", answered), ("lost", lost), ("invalid", invalid)]
    {
        fields.insert(name.to_owned(), count.into());
    }
    fields.insert("sent".to_owned(), sent.into());
    fields.insert("scheduled".to_owned(), (sent + skipped).into());
    fields
        .insert("causes".to_owned(), json!({ "fell-behind": skipped, "timeout": lost, "bad-tag": invalid }));
    fields.remove("histograms");
    fields.remove("strays");
    if answered == 0 {
        fields.insert("latency_us".to_owned(), Value::Null);
        fields.remove("from_send_us");
    }
}
