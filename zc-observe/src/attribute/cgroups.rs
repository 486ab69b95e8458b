//! Control groups: from the id that the kernel gives to the path and the container.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Groups looked at in one walk; a host with more has their rest unknown.
const MAX_GROUPS: usize = 100_000;

/// The cgroup2 hierarchy as far as we see it.
#[derive(Debug)]
pub struct Cgroups {
    /// Where it is mounted; `None` if it is not.
    root: Option<PathBuf>,
    /// Path by id, and `None` for ids that the last walk did not find.
    paths: HashMap<u64, Option<String>>,
}

impl Cgroups {
    /// Looks where the hierarchy is mounted.
    #[must_use]
    pub fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::at(mount_point(&mounts))
    }

    /// Uses the hierarchy that is mounted at a folder.
    #[must_use]
    pub fn at(root: Option<PathBuf>) -> Self {
        Self {
            root,
            paths: HashMap::new(),
        }
    }

    /// Path of a group below the root, `/` for the root itself. `None` if the group is
    /// gone, in a part of the hierarchy that we do not see, or the hierarchy is not mounted.
    ///
    /// An id that was not found stays unknown until [`Self::forget_unknown`].
    pub fn path(&mut self, id: u64) -> Option<&str> {
        if !self.paths.contains_key(&id) {
            self.walk();
            self.paths.entry(id).or_insert(None);
        }
        self.paths.get(&id)?.as_deref()
    }

    /// Looks for groups that were not found once more when they are asked for next, as once
    /// per scrape: each miss costs a walk.
    pub fn forget_unknown(&mut self) {
        self.paths.retain(|_, path| path.is_some());
    }

    /// Adds all groups that are there now. Those that are gone stay: their traffic was theirs.
    fn walk(&mut self) {
        let Some(root) = &self.root else { return };
        let mut open = vec![(root.clone(), String::from("/"))];
        let mut left = MAX_GROUPS;
        while let Some((folder, path)) = open.pop() {
            let Ok(meta) = fs::symlink_metadata(&folder) else {
                continue;
            };
            // On 64-bit kernels a group's id is its inode.
            self.paths.insert(meta.ino(), Some(path.clone()));
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries.flatten() {
                if left > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    left -= 1;
                    let name = entry.file_name();
                    let below =
                        format!("{}/{}", path.trim_end_matches('/'), name.to_string_lossy());
                    open.push((entry.path(), below));
                }
            }
        }
    }
}

impl Default for Cgroups {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the text of `/proc/PID/mountinfo` says that cgroup2 is mounted; the first mount
/// that shows the hierarchy from its root counts.
#[must_use]
pub fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, point) = (words.next()?, words.next()?);
        (filesystem.starts_with("cgroup2 ") && root == "/").then(|| Path::new(point).to_path_buf())
    })
}

/// The container's id in a group's path, if a container runtime made the group: docker,
/// containerd, cri-o and podman name groups by 64 hexadecimal digits, with their own prefix
/// and suffix. The innermost counts.
#[must_use]
pub fn container(path: &str) -> Option<&str> {
    path.rsplit('/').find_map(|name| {
        let name = name.strip_suffix(".scope").unwrap_or(name);
        let start = name.rfind(['-', ':']).map_or(0, |at| at + 1);
        let id = &name[start..];
        (id.len() == 64
            && id
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
        .then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_inode_and_outlive_their_folder() {
        let root = tempfile::tempdir().unwrap();
        let service = root.path().join("system.slice/web.service");
        fs::create_dir_all(&service).unwrap();
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        let ino = |path: &Path| fs::metadata(path).unwrap().ino();
        let file = ino(&root.path().join("cgroup.procs"));
        let gone = ino(&service);

        let mut cgroups = Cgroups::at(Some(root.path().to_path_buf()));
        assert_eq!(cgroups.path(gone), Some("/system.slice/web.service"));
        assert_eq!(cgroups.path(ino(root.path())), Some("/"));
        assert_eq!(cgroups.path(file), None, "a file is no group");
        fs::remove_dir(&service).unwrap();
        assert_eq!(cgroups.path(gone), Some("/system.slice/web.service"));
    }

    #[test]
    fn an_unknown_group_is_looked_for_again_only_when_asked() {
        let root = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let late = other.path().join("late");
        fs::create_dir(&late).unwrap();
        let id = fs::metadata(&late).unwrap().ino();

        let mut cgroups = Cgroups::at(Some(root.path().to_path_buf()));
        assert_eq!(cgroups.path(id), None);
        fs::rename(&late, root.path().join("late")).unwrap();
        assert_eq!(cgroups.path(id), None);
        cgroups.forget_unknown();
        assert_eq!(cgroups.path(id), Some("/late"));
    }

    #[test]
    fn without_the_hierarchy_nothing_is_known() {
        assert_eq!(Cgroups::at(None).path(1), None);
    }

    #[test]
    fn the_mount_is_found_in_pure_and_hybrid_layouts() {
        let pure = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(mount_point(pure), Some("/sys/fs/cgroup".into()));
        let hybrid = "\
30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
31 23 0:28 /docker/x /part rw - cgroup2 cgroup2 rw
32 23 0:28 / /sys/fs/cgroup/unified rw shared:9 master:1 - cgroup2 cgroup2 rw
";
        assert_eq!(mount_point(hybrid), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(
            mount_point("30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            None
        );
    }

    #[test]
    fn containers_are_recognised_as_runtimes_name_them() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("/system.slice/docker-{id}.scope"),
            format!("/docker/{id}"),
            format!("/machine.slice/libpod-{id}.scope/container"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("/kubepods/besteffort/pod1/{id}"),
            format!("/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{id}"),
        ] {
            assert_eq!(container(&path), Some(id.as_str()), "{path}");
        }
        for path in [
            "/",
            "/system.slice/web.service",
            "/docker/0123abcd",
            &"g".repeat(64),
        ] {
            assert_eq!(container(path), None, "{path}");
        }
    }
}
