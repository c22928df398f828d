//! `${NAME}` in string values: what the environment has by that name.
//!
//! Values are replaced once the file is parsed, so what a variable holds is never read as TOML, and comments and keys
//! are left alone. It is not looked through again: a `${` that comes from a variable means nothing. A value that is no
//! string stays literal, as its type is the file's to say.

use std::env::VarError;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ConfigError;

/// Replaces variables in all strings of `table`, in arrays and inner tables too; `variable` is the environment.
///
/// # Errors
/// The first mistake in the use of a variable, with its key; values after it are not replaced.
pub(super) fn fill_in(
    file: &Path,
    table: &mut DeTable<'_>,
    variable: &dyn Fn(&str) -> Result<String, VarError>,
) -> Result<(), ConfigError> {
    Filler { file, variable }.table("", table)
}

struct Filler<'a> {
    file: &'a Path,
    variable: &'a dyn Fn(&str) -> Result<String, VarError>,
}

impl Filler<'_> {
    fn table(&self, place: &str, table: &mut DeTable<'_>) -> Result<(), ConfigError> {
        table.iter_mut().try_for_each(|(key, value)| {
            let key = key.get_ref();
            let place = if place.is_empty() { key.to_string() } else { format!("{place}.{key}") };
            self.value(&place, value)
        })
    }

    fn value(&self, place: &str, value: &mut Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
        match value.get_mut() {
            DeValue::String(text) if text.contains('$') => {
                *text = self.filled(place, text)?.into();
                Ok(())
            }
            DeValue::Array(values) => values.iter_mut().try_for_each(|value| self.value(place, value)),
            DeValue::Table(table) => self.table(place, table),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => Ok(()),
        }
    }

    /// `text` with its variables replaced; `place` is its key.
    fn filled(&self, place: &str, text: &str) -> Result<String, ConfigError> {
        const DOLLAR: &str = "write $${ where these very characters are meant";
        let wrong = |problem: &str, remedy: &str| ConfigError::new(self.file, place, text, problem, remedy);
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            rest = after;
            if let Some(after) = rest.strip_prefix('$') {
                filled.push('$');
                rest = after;
                continue;
            }
            let Some(after) = rest.strip_prefix('{') else {
                filled.push('$');
                continue;
            };
            let Some((name, after)) = after.split_once('}') else {
                return Err(wrong("a ${ that is not closed", &format!("write ${{NAME}}, or {DOLLAR}")));
            };
            if name.is_empty() || !name.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'_') {
                let remedy = format!("write ASCII letters, digits and underscores in ${{NAME}}, or {DOLLAR}");
                return Err(wrong("no name of an environment variable between ${ and }", &remedy));
            }
            filled.push_str(&(self.variable)(name).map_err(|error| match error {
                VarError::NotPresent => wrong(
                    &format!("the environment variable {name} is not set"),
                    &format!("set it where this program is started, or {DOLLAR}"),
                ),
                VarError::NotUnicode(_) => wrong(
                    &format!("the environment variable {name} is no UTF-8"),
                    "set it to a text where this program is started",
                ),
            })?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use toml::Value;

    use super::*;

    fn variable(name: &str) -> Result<String, VarError> {
        match name {
            "HOST_IP" => Ok("192.0.2.7".to_owned()),
            "_9" => Ok("nine".to_owned()),
            "EMPTY" => Ok(String::new()),
            "NESTED" => Ok("${HOST_IP} $$".to_owned()),
            "EVIL" => Ok("\"\n[server]\nuser = \"root\" # ]'".to_owned()),
            "OCTETS" => Err(VarError::NotUnicode(OsString::from_vec(vec![0xFF]))),
            _ => Err(VarError::NotPresent),
        }
    }

    /// What becomes of a file.
    fn filled(text: &str) -> Result<Value, ConfigError> {
        let mut table = DeTable::parse(text).unwrap();
        fill_in(Path::new("test.toml"), table.get_mut(), &variable)?;
        Ok(serde::Deserialize::deserialize(toml::Deserializer::from(table)).unwrap())
    }

    /// What becomes of one value.
    fn value(text: &str) -> String {
        filled(&format!("a = '{text}'")).unwrap()["a"].as_str().unwrap().to_owned()
    }

    #[test]
    fn variables_are_replaced_and_other_dollar_signs_stay() {
        for (text, expected) in [
            ("${HOST_IP}:11123", "192.0.2.7:11123"),
            ("[${HOST_IP}]${_9}${HOST_IP}", "[192.0.2.7]nine192.0.2.7"),
            ("/${EMPTY}/", "//"),
            ("$HOST_IP $ 5$", "$HOST_IP $ 5$"),
            ("$$", "$"),
            ("$$$$ $$$", "$$ $$"),
            ("$${HOST_IP}", "${HOST_IP}"),
            ("$$${HOST_IP}", "$192.0.2.7"),
            ("}${HOST_IP}}{", "}192.0.2.7}{"),
            ("ü${HOST_IP}ü", "ü192.0.2.7ü"),
            ("", ""),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn variables_are_replaced_in_arrays_and_tables_and_nowhere_else() {
        let text = "# ${NONE}\n\"${NONE}\" = 1 # ${\n[a]\nb = [1, \"${_9}\", [\"x${_9}\"]]\n[[a.c]]\n\
                    d = { e = \"${_9}\" }\n";
        let expected =
            "\"${NONE}\" = 1\n[a]\nb = [1, \"nine\", [\"xnine\"]]\n[[a.c]]\nd = { e = \"nine\" }\n";
        assert_eq!(filled(text).unwrap(), toml::from_str::<Value>(expected).unwrap());
    }

    #[test]
    fn what_a_variable_holds_is_neither_toml_nor_looked_through_again() {
        assert_eq!(value("${NESTED}"), "${HOST_IP} $$");
        let evil = filled("[server]\nuser = \"${EVIL}\"").unwrap();
        assert_eq!(evil["server"]["user"].as_str(), variable("EVIL").ok().as_deref());
        assert_eq!(evil.as_table().unwrap().len(), 1);
    }

    #[test]
    fn mistakes_name_key_variable_and_remedy() {
        for (text, parts) in [
            ("[a]\nb = \"x${NONE}\"", ["a.b = \"x${NONE}\"", "variable NONE is not set", "set it where"]),
            ("[a]\nb = [\"\", \"${NONE}\"]", ["a.b = \"${NONE}\"", "NONE is not set", "$${"]),
            ("[[a]]\n[[a]]\nb = { c = \"${no}\" }", ["a.b.c = \"${no}\"", "no is not set", "set it"]),
            ("a = \"${HOST_IP\"", ["a = \"${HOST_IP\"", "not closed", "write ${NAME}, or write $${"]),
            ("a = \"${}\"", ["a = \"${}\"", "no name", "write ASCII letters"]),
            ("a = \"${HOST-IP}\"", ["a = \"${HOST-IP}\"", "no name", "underscores"]),
            ("a = \"${${HOST_IP}}\"", ["a = \"${${HOST_IP}}\"", "no name", "underscores"]),
            ("a = \"${OCTETS}\"", ["a = \"${OCTETS}\"", "variable OCTETS is no UTF-8", "set it to a text"]),
        ] {
            let message = filled(text).unwrap_err().to_string();
            for part in parts {
                assert!(message.contains(part), "{part:?} is not in {message:?}");
            }
        }
    }
}
