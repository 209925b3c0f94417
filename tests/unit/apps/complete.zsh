#!/usr/bin/env zsh
# SPDX-License-Identifier: Apache-2.0
# usage: complete.zsh FOLDER LINE...   prints each line as a Tab completes it in a shell whose
#        $fpath begins with the folder
emulate -L zsh
zmodload zsh/zpty
folder=$1
shift
for line in "$@"; do
  zpty shell "zsh -f -i"
  zpty -w shell "PS1= PS2= RPS1=; unsetopt beep auto_list auto_menu zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste"
  zpty -w shell "fpath=(${(q)folder} \$fpath); autoload -Uz compinit; compinit -u -D"
  zpty -w shell 'complete_and_end() { zle complete-word; print -r -- "<""<$BUFFER>"">"; exit }'
  zpty -w shell "zle -N complete_and_end; bindkey '^I' complete_and_end; print -r -- rea''dy"
  zpty -r shell answer '*ready*' || exit 1
  zpty -w -n shell "$line"$'\t'
  zpty -r shell answer '*<<*>>*' || exit 1
  answer=${answer##*<<}
  print -r -- "${answer%%>>*}"
  zpty -d shell
done
