//! Plugins: compiled once against the MPI or the DPDK of a site.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use graphmill_fabric::PluginKind;
use graphmill_storage::{IoChoice, Target, open_disk};

use crate::error::Error;

/// Compiles a plugin to `to`, and returns its path.
///
/// That for MPI takes the compiler of the MPI (`mpicc`), that for DPDK any compiler, and `pkg-config`. The default is the path at which
/// a job looks for it.
///
/// # Errors
/// There is no such compiler, it fails, or nothing can be written there.
pub fn build_plugin(
    kind: &PluginKind,
    compiler: &str,
    to: Option<&Path>,
) -> Result<PathBuf, Error> {
    let disk = open_disk(IoChoice::Threads)?;
    let named = || std::env::var_os(kind.variable).map(PathBuf::from);
    let to = to
        .map(Path::to_path_buf)
        .or_else(named)
        .or_else(|| kind.of_user());
    let to = to.ok_or(Error::NoPlaceForPlugin)?;
    if let Some(folder) = to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        disk.create_dir_all(folder)?;
    }
    let to = match disk.target(&to)? {
        Target::File(to) => to,
        Target::Stream => {
            let what = "no file";
            return Err(Error::OutputIs { path: to, what });
        }
    };
    // The compiler writes a temporary file, so that a failure keeps the old plugin whole.
    let aside = to.with_extension(format!("so.{}", std::process::id()));
    let failed = |what: String| Error::PluginBuild {
        compiler: compiler.to_string(),
        what,
    };
    let compiled = flags(kind)
        .and_then(|flags| compile(kind, compiler, &flags, &aside))
        .map_err(|error| failed(error.to_string()));
    let renamed = compiled.and_then(|output| match output.status.success() {
        true => Ok(disk.rename(&aside, &to)?),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    });
    if renamed.is_err() {
        let _ = disk.remove_file(&aside);
    }
    renamed.map(|()| to)
}

/// Returns the flags with which the compiler finds the library.
fn flags(kind: &PluginKind) -> std::io::Result<Vec<String>> {
    let Some(library) = kind.library else {
        return Ok(Vec::new());
    };
    let mut command = Command::new("pkg-config");
    let found = command.args(["--cflags", "--libs", library]).output();
    let found = found.map_err(|error| std::io::Error::other(format!("pkg-config: {error}")))?;
    match found.status.success() {
        true => {
            let text = String::from_utf8_lossy(&found.stdout);
            Ok(text.split_whitespace().map(str::to_owned).collect())
        }
        false => Err(std::io::Error::other(
            String::from_utf8_lossy(&found.stderr).into_owned(),
        )),
    }
}

fn compile(
    kind: &PluginKind,
    compiler: &str,
    flags: &[String],
    to: &Path,
) -> std::io::Result<std::process::Output> {
    let mut command = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .arg(to)
        .args(["-x", "c", "-"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = command.stdin.take() {
        // A compiler that does not read says why in its own words.
        let _ = stdin.write_all(kind.source.as_bytes());
    }
    command.wait_with_output()
}
