#compdef fullbore
# Completion of fullbore for zsh: fullbore itself says what may come next.
#   eval "$(fullbore completion zsh)"       # in ~/.zshrc, after compinit; or as the file _fullbore in a directory of $fpath
_fullbore() {
  local line files word
  local -a closed open
  local separator=${words[(i)--]}
  if ((separator < CURRENT)); then # the command is completed as it always is
    shift $separator words
    ((CURRENT -= separator))
    _normal
    return
  fi
  for line in "${(@f)$(${(Q)words[1]} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    word=${${line%%$'\t'*}//:/\\:}
    case $line in
      '') ;;
      :files) files=-g\ '*' ;;
      :directories) files=-/ ;;
      *=$'\t'*) open+=("$word:${line#*$'\t'}") ;;
      *) closed+=("$word:${line#*$'\t'}") ;;
    esac
  done
  (( $#open )) && _describe -V fullbore open -S ''
  (( $#closed )) && _describe -V fullbore closed -U
  case $files in
    -/) compset -P '*='; _files -/ ;;
    ?*) compset -P '*='; _files ;;
  esac
}
if [[ $funcstack[1] == _fullbore ]]; then _fullbore "$@"; else compdef _fullbore fullbore; fi
