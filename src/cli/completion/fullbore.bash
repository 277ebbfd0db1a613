# Completion of fullbore for bash: fullbore itself says what may come next.
#   eval "$(fullbore completion bash)"      # in ~/.bashrc
_fullbore() {
  local line typed prefix i words=() found=()
  COMPREPLY=()
  for ((i = 1; i <= COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- && $i -lt $COMP_CWORD ]]; then # the command is completed as it always is
      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else compopt -o default; fi
      return
    fi
    # bash takes --json=a apart
    if ((i > 1)) && [[ ${COMP_WORDS[i]} == = || ${COMP_WORDS[i - 1]} == = ]]; then
      words[${#words[@]} - 1]+=${COMP_WORDS[i]//\\/}
    else
      words+=("${COMP_WORDS[i]//\\/}")
    fi
  done
  typed=${words[${#words[@]} - 1]}
  prefix=${typed%"${typed##*=}"}
  while IFS= read -r line; do
    case $line in
      :files) mapfile -t found < <(compgen -f -- "${typed#"$prefix"}") && compopt -o filenames ;;
      :directories) mapfile -t found < <(compgen -d -- "${typed#"$prefix"}") && compopt -o filenames ;;
      *)
        line=${line%%$'\t'*}
        [[ $line == *= ]] && compopt -o nospace
        line=${line#"$prefix"}
        COMPREPLY+=("${line// /\\ }")
        ;;
    esac
  done < <("${1/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)
  COMPREPLY+=("${found[@]}")
}
complete -F _fullbore fullbore
