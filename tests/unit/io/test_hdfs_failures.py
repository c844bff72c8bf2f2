"""What HDFS answers is told as what a person can mend, or as what may pass by itself."""

from __future__ import annotations

from functools import partial

import pytest

from spark_pace.errors import FullStoreError, SetupError, UnfitError
from spark_pace.io.files import files, hdfs
from spark_pace.io.files.addresses import StorePath, StoreSettings
from spark_pace.io.files.contract import hdfs_failure, hdfs_table_failure
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import checkpoint_lock

# as hdfs-native 0.14.7 told what Hadoop 3.5.0 had answered
DENIED = (
    'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=stranger, '
    'access=WRITE, inode=\\"/q\\":root:supergroup:drwxr-xr-x\\n\\tat org.apache.hadoop.hdfs.X")'
)
SAFE = (
    'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot create file/q/d. '
    'Name node is in safe mode.\\nIt was turned on manually. Use \\"hdfs dfsadmin -safemode leave\\"")'
)
NAMES = (
    'RPCError("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "The NameSpace quota '
    '(directories and files) of directory /q is exceeded: quota=2 file count=3\\n\\tat org.apache.X")'
)
SPACE = (
    'RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The DiskSpace quota of /q is '
    'exceeded: quota = 10 B = 10 B but diskspace consumed = 134217729 B = 128.00 MB\\n\\tat org.apache.X")'
)
COLON = 'RPCError("org.apache.hadoop.fs.InvalidPathException", "Invalid path name /a/b/x:y\\n\\tat org.X")'
BUG = 'RPCError("java.lang.NullPointerException", "null\\n\\tat org.apache.hadoop.hdfs.X")'
DATA = 'DataTransferError("All DataNodes failed: [DatanodeInfoProto { ip_addr: \\"127.0.0.1\\" }]")'
WHO = "Name a user who may by HADOOP_USER_NAME, or change the rights of the folder."
CAUSE = "Correct the address, or the cause, which the name node's log may tell."
NODE = "Start the name node, or correct the host and the port."


@pytest.mark.parametrize(
    ("error", "kind", "may_pass", "told"),
    [
        (
            RuntimeError(DENIED),
            UnfitError,
            False,
            "AccessControlException: Permission denied: user=stranger, access=WRITE, "
            f'inode="/q":root:supergroup:drwxr-xr-x. {WHO}',
        ),
        (
            RuntimeError(SAFE),
            SetupError,
            True,
            "SafeModeException: Cannot create file/q/d. Name node is in safe mode. Wait until the name node "
            "has left its safe mode, and start the job again.",
        ),
        (
            RuntimeError(NAMES),
            FullStoreError,
            False,
            "NSQuotaExceededException: The NameSpace quota (directories and files) of directory /q is "
            "exceeded: quota=2 file count=3. Make room, or raise the quota, and start the job again.",
        ),
        (
            RuntimeError(SPACE),
            FullStoreError,
            False,
            "DSQuotaExceededException: The DiskSpace quota of /q is exceeded: quota = 10 B = 10 B but "
            "diskspace consumed = 134217729 B = 128.00 MB. Make room, or raise the quota, and start the job "
            "again.",
        ),
        (
            RuntimeError(COLON),
            UnfitError,
            False,
            f"InvalidPathException: Invalid path name /a/b/x:y. {CAUSE}",
        ),
        (
            RuntimeError(BUG),
            UnfitError,
            False,
            f"NullPointerException: null. {CAUSE}",
        ),
        (
            RuntimeError(DATA),
            SetupError,
            True,
            "All DataNodes failed. Start data nodes that have room, and then the job again.",
        ),
        (
            RuntimeError('InvalidArgument("No NameNode hosts found")'),
            UnfitError,
            False,
            "No NameNode hosts found. Add the port, or name the service in the files of HADOOP_CONF_DIR.",
        ),
        (
            OSError("Connection refused (os error 111)"),
            SetupError,
            True,
            f"Connection refused (os error 111). {NODE}",
        ),
    ],
)
def test_an_answer_is_told_in_one_line_with_what_to_do(
    error: Exception, kind: type[SetupError], may_pass: bool, told: str
) -> None:
    found = hdfs_failure("hdfs://host:8020/ck", error)
    must = "must be a place on HDFS that answers and that this job may use"
    assert (type(found), str(found)) == (kind, f"hdfs://host:8020/ck — {must}; got: {told}")
    assert (found.may_pass and kind is not FullStoreError) == may_pass


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "RPC error: org.apache.hadoop.security.AccessControlException Permission denied: user=stranger, "
            'access=WRITE, inode="/":root:supergroup:drwxr-xr-x at org.apache.hadoop.hdfs.X(X.java:663)',
            "AccessControlException: Permission denied: user=stranger, access=WRITE, "
            f'inode="/":root:supergroup:drwxr-xr-x. {WHO}',
        ),
        (
            "IO error occurred while communicating with HDFS: Connection refused (os error 111)",
            f"IO error occurred while communicating with HDFS: Connection refused (os error 111). {NODE}",
        ),
        (
            "invalid argument: No NameNode hosts found",
            "invalid argument: No NameNode hosts found. Add the port, or name the service in the files of "
            "HADOOP_CONF_DIR.",
        ),
    ],
)
def test_what_delta_rs_says_of_hdfs_is_told_in_the_same_way(text: str, told: str) -> None:
    found = hdfs_table_failure("hdfs://host:8020/out", f"Kernel error: Generic HdfsObjectStore error: {text}")
    assert str(found).partition("got: ")[2] == told


@pytest.mark.parametrize(
    ("address", "got", "kind"),
    [
        ("hdfs://127.0.0.1:1/ck", rf"Connection refused \(os error 111\)\. {NODE}$", SetupError),
        (
            "hdfs://no-such-host.invalid:8020/ck",
            rf"failed to lookup address information.* {NODE}$",
            SetupError,
        ),
        ("hdfs://service/ck", r"No NameNode hosts found\. Add the port, or name the service", UnfitError),
    ],
)
def test_an_address_without_a_name_node_is_told_in_one_line(
    address: str, got: str, kind: type[SetupError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hdfs, "AT_START_S", 1)
    path = StorePath.of(address, StoreSettings())
    told = rf"^{address} — must be a place on HDFS that .* got: {got}"
    for ask in (partial(files.require_source, path), checkpoint_lock(Checkpoint(path)).__enter__):
        with pytest.raises(SetupError, match=told) as caught:
            ask()
        assert type(caught.value) is kind
