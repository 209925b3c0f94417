# SPDX-License-Identifier: Apache-2.0
"""Where the programs are: in a bundle, or in a build folder."""

import fcntl
import os
import pathlib
import shutil
import socket
import struct
import sys

from .stages import Skipped

# Where each program's target puts it.
IN_BUILD = {
    "trireme": "bin/trireme",
    "gpu_kernels": "tests/gpu/gpu_kernels",
    "gpu_nccl": "tests/gpu/gpu_nccl",
    "gpu_training": "tests/gpu/gpu_training",
    "gpu_nccl": "tests/gpu/gpu_nccl",
    "bench_kernels": "perf/bench/kernels/bench_kernels",
    "bench_gpu_memory": "perf/bench/gpu_memory/bench_gpu_memory",
}

# More ranks than GPUs, on one machine: as the tests start them (tests/support/mpirun).
LAUNCH = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "vader,self", "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none", "OMP_NUM_THREADS": "1",
}


# The CUDA libraries that programs find are those of this interpreter's wheels, wherever it lies and
# whatever PATH says, unless somebody has chosen others.
os.environ.setdefault("VIRTUAL_ENV", sys.prefix)


def wake_loopback():
    """Ranks of one machine meet over 127.0.0.1, which a machine without a network may have asleep."""
    get_flags, set_flags, up = 0x8913, 0x8914, 1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            asked = fcntl.ioctl(any_socket, get_flags, struct.pack("16sH14x", b"lo", 0))
            flags = struct.unpack("16sH14x", asked)[1]
            if not flags & up:
                fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14x", b"lo", flags | up))
        except OSError as error:
            print(f"gpu-check: lo cannot be woken ({error}); ranks may not find each other",
                  file=sys.stderr, flush=True)


class Programs:
    def __init__(self, root, build=None):
        """`root` is the repository, or share/trireme of a bundle."""
        bundle = pathlib.Path(root).parent.parent
        self.bundle = bundle if build is None and (bundle / "libexec/trireme").exists() else None
        self.build = pathlib.Path(build or pathlib.Path(root) / "build")

    def find(self, name):
        path = self.bundle / "bin" / name if self.bundle else self.build / IN_BUILD[name]
        if not path.exists():
            raise Skipped(f"{name} is not built ({path}); a build without CUDA lacks it")
        return path

    def launcher(self, ranks):
        path = self.bundle / "bin/mpirun" if self.bundle else shutil.which("mpirun")
        if not path:
            raise Skipped("there is no mpirun; a bundle brings one (scripts/bundle)")
        return [path, "-n", str(ranks)]


def find_tool(name):
    """A program of CUDA's toolkit."""
    folders = [os.environ.get("PATH", "")]
    folders += [f"{os.environ[key]}/bin" for key in ("CUDA_HOME", "CUDA_PATH") if key in os.environ]
    return shutil.which(name, path=":".join([*folders, "/usr/local/cuda/bin"]))
