# SPDX-License-Identifier: Apache-2.0
# Rooms and their layers. A room may use only rooms of a lower layer, and exactly one room may
# include each foreign API; both rules are checked here, so a breach ends the configuration.
set(TRIREME_LAYER_base 0)
set(TRIREME_LAYER_schema 2)
set(TRIREME_LAYER_layout 1)
set(TRIREME_LAYER_topology 1)
set(TRIREME_LAYER_telemetry 1)
set(TRIREME_LAYER_web 1)
set(TRIREME_LAYER_ownership 2)
set(TRIREME_LAYER_config 3)
set(TRIREME_LAYER_launch 3)
set(TRIREME_LAYER_record 2)
set(TRIREME_LAYER_store 2)
set(TRIREME_LAYER_device 2)
set(TRIREME_LAYER_data 2)
set(TRIREME_LAYER_comm 3)
set(TRIREME_LAYER_postmortem 4)
set(TRIREME_LAYER_model 4)
set(TRIREME_LAYER_optim 4)
set(TRIREME_LAYER_predict 4)
set(TRIREME_LAYER_checkpoint 4)
set(TRIREME_LAYER_report 5)
set(TRIREME_LAYER_layers 5)
set(TRIREME_LAYER_sharding 5)
set(TRIREME_LAYER_track 6)
set(TRIREME_LAYER_engine 6)
set(TRIREME_LAYER_runtime 7)
set(TRIREME_LAYER_huggingface 8)
set(TRIREME_LAYER_inference 9)
set(TRIREME_LAYER_plan 10)
set(TRIREME_LAYER_train 10)
set(TRIREME_LAYER_apps 11)
set(TRIREME_ROOMS base schema layout topology ownership launch record telemetry web store device data config comm
    postmortem predict model optim checkpoint report layers sharding track engine runtime huggingface inference plan train
    apps)

# Foreign headers (as regular expressions) and the only room that may include them.
set(TRIREME_FOREIGN_OWNERS
  "fmt/=base" "nlohmann/=base" "boost/program_options=config" "hwloc=topology"
  "cuda=device" "cublas=device" "cudnn=device" "cusolver=device" "dnnl=device" "oneapi/dnnl=device"
  "pcre2=data" "curl/=web" "httplib=web" "pugixml=store" "zlib=data" "zstd=data" "mpi\\.h=comm" "nccl=comm" "ucp/=nccl-net-plugin"
  "hdf5=checkpoint" "H5=checkpoint" "isa-l=base" "openssl/=base" "pmix=runtime"
  "CLI/=apps" "slurm/=spank-plugin")

# Public headers of what trireme_add_backends() makes of room comm.
set(TRIREME_BACKEND_HEADERS "comm/(measure|mpi_runtime|nccl|nccl_log|nccl_memory|staged|versions)\\.hpp")

function(trireme_check_includes room depends files)
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(STRINGS "${file}" includes REGEX "^ *# *include ")
    foreach(line IN LISTS includes)
      if(line MATCHES "\"trireme/${TRIREME_BACKEND_HEADERS}" AND NOT room STREQUAL "comm" AND
          TRIREME_LAYER_${room} LESS TRIREME_LAYER_runtime)
        message(FATAL_ERROR "${file}: includes a header of comm's backends, which only rooms from "
          "'runtime' on link")
      endif()
      if(line MATCHES "\"trireme/([a-z]+)/")
        set(other "${CMAKE_MATCH_1}")
        if(NOT other STREQUAL room AND NOT other IN_LIST depends)
          message(FATAL_ERROR "${file}: includes room '${other}', which room '${room}' does not "
            "declare in DEPENDS (README.md, Rooms)")
        endif()
      elseif(line MATCHES "\"([a-z]+)/" AND CMAKE_MATCH_1 IN_LIST TRIREME_ROOMS)
        if(NOT CMAKE_MATCH_1 STREQUAL room)
          message(FATAL_ERROR "${file}: includes a private header of room '${CMAKE_MATCH_1}'; "
            "other rooms see include/trireme/${CMAKE_MATCH_1} alone")
        endif()
      elseif(line MATCHES "include <([^>]+)>")
        set(header "${CMAKE_MATCH_1}")
        foreach(entry IN LISTS TRIREME_FOREIGN_OWNERS)
          string(REGEX MATCH "^(.*)=([a-z-]+)$" _ "${entry}")
          if(header MATCHES "^${CMAKE_MATCH_1}")
            string(REGEX REPLACE "^.*=" "" owner "${entry}")
            if(NOT owner STREQUAL room)
              message(FATAL_ERROR "${file}: includes <${header}>, which only room '${owner}' may")
            endif()
          endif()
        endforeach()
      endif()
    endforeach()
  endforeach()
endfunction()

# trireme_add_room(<room> SOURCES <file>... [DEPENDS <room>...] [LINK <library>...]
#                  [PRIVATE_LINK <library>...] [HEADERS QUICK|HOT|<header>...])
# Makes target trireme_<room> with alias trireme::<room>. DEPENDS are rooms of lower layers. HEADERS:
# the precompiled ones that it takes; QUICK and rooms with headers of their own compute nothing, and
# are compiled without the costly optimisations.
function(trireme_add_room room)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK;PRIVATE_LINK;HEADERS" ${ARGN})
  if(NOT DEFINED TRIREME_LAYER_${room})
    message(FATAL_ERROR "room '${room}' has no layer; add it to scripts/cmake/TriremeRooms.cmake")
  endif()
  foreach(other IN LISTS ARG_DEPENDS)
    if(NOT DEFINED TRIREME_LAYER_${other})
      message(FATAL_ERROR "room '${room}' depends on unknown room '${other}'")
    endif()
    if(NOT TRIREME_LAYER_${other} LESS TRIREME_LAYER_${room})
      message(FATAL_ERROR "room '${room}' (layer ${TRIREME_LAYER_${room}}) may not depend on "
        "'${other}' (layer ${TRIREME_LAYER_${other}}): a room sees only lower layers")
    endif()
  endforeach()
  file(GLOB_RECURSE files CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/src/${room}/*.[ch]pp" "${PROJECT_SOURCE_DIR}/src/${room}/*.cu*"
    "${PROJECT_SOURCE_DIR}/include/trireme/${room}/*.hpp")
  trireme_check_includes(${room} "${ARG_DEPENDS}" "${files}")

  list(JOIN ARG_DEPENDS ", " sees)
  set_property(GLOBAL PROPERTY TRIREME_ROOM_${room}_SEES "${sees}")

  list(TRANSFORM ARG_DEPENDS PREPEND trireme::)
  trireme_add_part(${room} SOURCES ${ARG_SOURCES} LINK ${ARG_DEPENDS} ${ARG_LINK}
    PRIVATE_LINK ${ARG_PRIVATE_LINK} HEADERS ${ARG_HEADERS})
endfunction()

# trireme_add_backends(<room> SOURCES <file>... [PRIVATE_LINK <library>...] [HEADERS ...])
# Makes target trireme_<room>_backends with alias trireme::<room>_backends of sources that implement
# the room's contract: who links the room alone does not link their libraries.
function(trireme_add_backends room)
  trireme_add_part(${room}_backends LINK trireme::${room} ${ARGN})
endfunction()

# Library of a room, with the options and precompiled headers of all.
function(trireme_add_part name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK;HEADERS" ${ARGN})
  set(target trireme_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(trireme::${name} ALIAS ${target})
  target_include_directories(${target}
    PUBLIC "${PROJECT_SOURCE_DIR}/include"
    PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/generated")
  target_link_libraries(${target} PRIVATE trireme_options)
  target_link_libraries(${target} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  if(ARG_HEADERS STREQUAL "HOT")
    target_precompile_headers(${target} REUSE_FROM trireme_room_headers)
  elseif(ARG_HEADERS)
    target_link_libraries(${target} PRIVATE trireme_quick_options)
    if(ARG_HEADERS STREQUAL "QUICK")
      target_precompile_headers(${target} REUSE_FROM trireme_quick_room_headers)
    else()
      target_precompile_headers(${target} PRIVATE ${TRIREME_COMMON_HEADERS} ${ARG_HEADERS})
    endif()
  endif()
  if(ARG_HEADERS)
    trireme_join_sources(${target})
  endif()
endfunction()

# trireme_write_rooms(<file>): the rooms of this build from the top layer down, and what each sees:
# the picture in docs/architecture.md, which a test compares with this file.
function(trireme_write_rooms file)
  set(text "| layer | room | sees |\n|---|---|---|\n")
  foreach(layer RANGE 20)
    math(EXPR from_top "20 - ${layer}")
    foreach(room IN LISTS TRIREME_ROOMS)
      if(TRIREME_LAYER_${room} EQUAL from_top)
        get_property(sees GLOBAL PROPERTY TRIREME_ROOM_${room}_SEES)
        string(APPEND text "| ${from_top} | `${room}` | ${sees} |\n")
      endif()
    endforeach()
  endforeach()
  file(WRITE "${file}" "${text}")
endfunction()
