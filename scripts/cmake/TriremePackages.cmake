# SPDX-License-Identifier: Apache-2.0
# What is installed beside the programs, and Debian packages of it: `cmake --build BUILD` and
# `cpack --config BUILD/CPackConfig.cmake -B FOLDER` make FOLDER/trireme_*.deb and, with Slurm's
# headers, FOLDER/trireme-slurm22.05_*.deb (docs/install-slurm.md).
include(GNUInstallDirs)
find_program(TRIREME_GZIP gzip REQUIRED)
mark_as_advanced(TRIREME_GZIP)

# Manual pages and completion are what the program says of itself.
set(documents "")
# trireme_generate(<file> [COMPRESSED] ARGUMENTS <argument of trireme>...)
function(trireme_generate file)
  cmake_parse_arguments(ARG "COMPRESSED" "" "ARGUMENTS" ${ARGN})
  set(out "${PROJECT_BINARY_DIR}/share/${file}")
  get_filename_component(folder "${out}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  set(filter "")
  if(ARG_COMPRESSED)
    set(filter | "${TRIREME_GZIP}" -9n)
  endif()
  add_custom_command(OUTPUT "${out}" COMMAND trireme ${ARG_ARGUMENTS} ${filter} > "${out}"
    DEPENDS trireme COMMENT "Writing ${file}" VERBATIM)
  set(documents ${documents} "${out}" PARENT_SCOPE)
endfunction()
trireme_generate(man/trireme.1.gz COMPRESSED ARGUMENTS man)
trireme_generate(man/trireme-launch.7.gz COMPRESSED ARGUMENTS man trireme-launch)
trireme_generate(man/spank_trireme.8.gz COMPRESSED ARGUMENTS man spank_trireme)
trireme_generate(completion/trireme ARGUMENTS completion bash)
trireme_generate(completion/_trireme ARGUMENTS completion zsh)
trireme_generate(completion/trireme.fish ARGUMENTS completion fish)
add_custom_target(trireme_documents ALL DEPENDS ${documents})

set(share "${PROJECT_BINARY_DIR}/share")
install(TARGETS trireme RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT trireme)
install(FILES "${share}/man/trireme.1.gz" DESTINATION "${CMAKE_INSTALL_DATADIR}/man/man1"
  COMPONENT trireme)
install(FILES "${share}/man/trireme-launch.7.gz" DESTINATION "${CMAKE_INSTALL_DATADIR}/man/man7"
  COMPONENT trireme)
install(FILES "${share}/completion/trireme"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT trireme)
install(FILES "${share}/completion/_trireme"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions" COMPONENT trireme)
install(FILES "${share}/completion/trireme.fish"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT trireme)
install(DIRECTORY configs slurm DESTINATION "${CMAKE_INSTALL_DATADIR}/trireme" COMPONENT trireme
  USE_SOURCE_PERMISSIONS)
file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.md")
install(FILES README.md DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/trireme" COMPONENT trireme)
install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/trireme/docs" COMPONENT trireme)
install(DIRECTORY docs/images docs/decisions
  DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/trireme/docs" COMPONENT trireme)

set(package_components trireme)
set(package_names trireme)
if(TARGET spank_trireme)
  list(APPEND package_components slurm)
  list(APPEND package_names "trireme-slurm${TRIREME_SLURM_VERSION}")
  install(FILES "${share}/man/spank_trireme.8.gz" DESTINATION "${CMAKE_INSTALL_DATADIR}/man/man8"
    COMPONENT slurm)
  # Of the package alone: elsewhere a site's own configuration is not for us to write.
  file(READ slurm/plugstack.conf.d/trireme.conf line)
  string(REGEX REPLACE "spank_trireme-[0-9]+\\.[0-9]+" "spank_trireme-${TRIREME_SLURM_VERSION}"
    line "${line}")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/package/trireme.conf" CONTENT "${line}" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/package/trireme.conf"
    DESTINATION /etc/slurm/plugstack.conf.d COMPONENT slurm EXCLUDE_FROM_ALL)
endif()

# Debian's papers: who may do what with it, and what changed.
# The commit's day: packages of one commit are equal.
trireme_ask_git(PACKAGE_DATE log -1 --format=%cD)
if(NOT PACKAGE_DATE)
  string(TIMESTAMP PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
foreach(component name IN ZIP_LISTS package_components package_names)
  set(PACKAGE_NAME "${name}")
  set(folder "${PROJECT_BINARY_DIR}/package/${name}")
  configure_file(scripts/cmake/package/changelog.in "${folder}/changelog" @ONLY)
  execute_process(COMMAND "${TRIREME_GZIP}" -9nf "${folder}/changelog" COMMAND_ERROR_IS_FATAL ANY)
  install(FILES "${folder}/changelog.gz" RENAME changelog.Debian.gz
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${name}" COMPONENT ${component})
  install(FILES scripts/cmake/package/copyright
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${name}" COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trireme)
set(CPACK_PACKAGE_VENDOR Trireme)
set(CPACK_PACKAGE_CONTACT "Trireme <maintainers@trireme.invalid>")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_COMPONENTS_ALL ${package_components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
# Files of /etc have their place whatever the prefix is.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
  GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# Each package has its own first line.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_DEBIAN_TRIREME_PACKAGE_NAME trireme)
set(CPACK_DEBIAN_TRIREME_DESCRIPTION "launches and trains large language models on clusters
One C++20 executable, started on every rank by srun or mpirun, runs data,
tensor and pipeline parallel training with sharded HDF5 checkpoints that any
other layout can load. Templates for Slurm are in /usr/share/trireme/slurm.")
set(CPACK_DEBIAN_TRIREME_PACKAGE_RECOMMENDS "openmpi-bin, libopenblas0-serial")
if(TARGET nccl_net_trireme)
  file(WRITE "${PROJECT_BINARY_DIR}/package/triggers" "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_TRIREME_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/package/triggers")
endif()
set(CPACK_DEBIAN_TRIREME_PACKAGE_SUGGESTS "trireme-slurm${TRIREME_SLURM_VERSION}")
if(TARGET spank_trireme)
  set(CPACK_DEBIAN_SLURM_PACKAGE_NAME "trireme-slurm${TRIREME_SLURM_VERSION}")
  set(CPACK_DEBIAN_SLURM_DESCRIPTION "options of Trireme for srun, sbatch and salloc
A SPANK plugin that judges a parallel layout where it is typed, hands it to
the ranks, and notes on each node how they end. It goes with Slurm ${TRIREME_SLURM_VERSION}
alone, on submitting hosts and on nodes.")
  set(CPACK_DEBIAN_SLURM_PACKAGE_SECTION admin)
  set(CPACK_DEBIAN_SLURM_PACKAGE_DEPENDS
    "slurm-wlm-basic-plugins (>= ${TRIREME_SLURM_VERSION}), slurm-wlm-basic-plugins (<< ${TRIREME_SLURM_VERSION}.99)")
  set(CPACK_DEBIAN_SLURM_PACKAGE_SUGGESTS trireme)
  file(WRITE "${PROJECT_BINARY_DIR}/package/conffiles"
    "/etc/slurm/plugstack.conf.d/trireme.conf\n")
  set(CPACK_DEBIAN_SLURM_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/package/conffiles")
endif()
include(CPack)
