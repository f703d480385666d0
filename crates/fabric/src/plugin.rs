//! Plugins: libraries that are compiled against what a site has, and loaded at run time.

#![expect(unsafe_code, reason = "loads a library and calls one function of it")]

use std::error::Error;
use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::error::FabricError;

/// A kind of plugin.
#[derive(Debug)]
pub struct PluginKind {
    /// The command that builds it is `graphmill NAME build`; functions begin with `graphmill_NAME_`.
    pub name: &'static str,
    /// The environment variable that names the file.
    pub variable: &'static str,
    /// Name of the file beside the command, and in the user's directory.
    pub file: &'static str,
    /// The library for which `pkg-config` gives the compiler its flags.
    pub library: Option<&'static str>,
    /// The source in C.
    pub source: &'static str,
    /// The version of the source that this program requires.
    version: u32,
}

/// Operations of MPI.
pub const MPI_PLUGIN: PluginKind = PluginKind {
    name: "mpi",
    variable: "GRAPHMILL_MPI",
    file: "graphmill-mpi.so",
    library: None,
    source: include_str!("mpi/plugin.c"),
    version: 1,
};

/// Frames by DPDK.
pub const DPDK_PLUGIN: PluginKind = PluginKind {
    name: "dpdk",
    variable: "GRAPHMILL_DPDK",
    file: "graphmill-dpdk.so",
    library: Some("libdpdk"),
    source: include_str!("bucket/dpdk/plugin.c"),
    version: 1,
};

impl PluginKind {
    /// Returns the possible places of the plugin.
    ///
    /// It is the path in the environment, or else beside the command and in the user's directory.
    #[must_use]
    pub fn places(&self) -> Vec<PathBuf> {
        if let Some(named) = std::env::var_os(self.variable) {
            return vec![PathBuf::from(named)];
        }
        let command = std::env::current_exe().ok();
        let beside = command.and_then(|command| Some(command.parent()?.join(self.file)));
        beside.into_iter().chain(self.of_user()).collect()
    }

    /// Returns the place in the user's directory.
    #[must_use]
    pub fn of_user(&self) -> Option<PathBuf> {
        let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
        Some(data.or_else(home)?.join("graphmill").join(self.file))
    }

    /// Loads the plugin, which is never unloaded, since it may have threads.
    pub(crate) fn load(&self, path: &Path) -> Result<&'static Library, Box<dyn Error>> {
        // SAFETY: `graphmill NAME build` made the file of the source, or a user chose to trust it; loading it runs the code that the
        // libraries run on loading.
        let library = unsafe { Library::new(path)? };
        let library: &'static Library = Box::leak(Box::new(library));
        let symbol = format!("graphmill_{}_abi", self.name);
        // SAFETY: the symbol has this type in the source, of any version.
        let version = unsafe { library.get::<unsafe extern "C" fn() -> u32>(symbol.as_bytes())?() };
        if version != self.version {
            let what = format!(
                "it is of version {version}, and this program requires version {}; build it again (graphmill {} build)",
                self.version, self.name
            );
            return Err(what.into());
        }
        Ok(library)
    }

    /// Returns the error of a plugin that cannot be loaded or does not start.
    pub(crate) fn error(path: &Path, error: &dyn Error) -> FabricError {
        FabricError::Plugin {
            path: path.to_path_buf(),
            what: match error.source() {
                // The error itself says only which call failed.
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
        }
    }
}

/// Returns the text, up to a 0, that a function writes to a buffer.
pub(crate) fn text(write: impl FnOnce(*mut c_char, c_int)) -> String {
    let mut room = [0_u8; 512];
    write(room.as_mut_ptr().cast(), room.len() as c_int);
    let text = room.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_string()
}
