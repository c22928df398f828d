//! Options of `keys` that have no effect are refused, with what to do.

use crate::lab::{authentick, refused};

#[test]
fn options_without_effect_are_exit_64() {
    let drill = ["keys", "drill", "--key-exchange", "127.0.0.1", "--server", "127.0.0.1"];
    let status = ["keys", "status", "--metrics", "http://127.0.0.1:1/metrics"];
    let of_config = ["keys", "seal", "list"];
    let of_file = ["keys", "seal", "list", "--file", "/nowhere/seal"];
    for (command, has_config) in [(&drill[..], true), (&status, true), (&of_file, true), (&of_config, false)]
    {
        let output = authentick([command, &["--state-directory", "/nowhere"]].concat());
        refused(&output, 64, &["--state-directory"]);
        let output = authentick([command, &["--config", "/nowhere/authentick.toml"]].concat());
        if has_config {
            refused(&output, 64, &["cannot be used with", "--config"]);
        } else {
            refused(&output, 78, &["/nowhere/authentick.toml"]);
        }
    }
    // Without them, each goes as far as it can.
    refused(&authentick(of_file), 78, &["/nowhere/seal", "keys seal generate"]);
}
