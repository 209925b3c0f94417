# SPDX-License-Identifier: Apache-2.0
# Toolchain file: compiles for aarch64 on another machine, with libraries of scripts/aarch64-sysroot,
# and runs what it has compiled in QEMU (tests/package/aarch64_test).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(sysroot "${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64/sysroot" ABSOLUTE)
set(CMAKE_SYSROOT "${sysroot}")
set(CMAKE_FIND_ROOT_PATH "${sysroot}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${sysroot}")
set(ENV{PKG_CONFIG_LIBDIR}
  "${sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig:${sysroot}/usr/share/pkgconfig")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${sysroot}")

# The compiler wrappers in reach are this machine's: no program has such a name.
set(MPI_EXECUTABLE_SUFFIX "-of-aarch64")
set(libraries "${sysroot}/usr/lib/aarch64-linux-gnu/openmpi")
set(MPI_CXX_HEADER_DIR "${libraries}/include" CACHE PATH "mpi.h of the sysroot")
set(MPI_CXX_LIB_NAMES mpi CACHE STRING "MPI of the sysroot")
set(MPI_mpi_LIBRARY "${libraries}/lib/libmpi.so" CACHE FILEPATH "MPI of the sysroot")
# Libraries of libraries.
foreach(kind IN ITEMS EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,-rpath-link,${sysroot}/usr/lib/aarch64-linux-gnu")
endforeach()
