#!/usr/bin/env bash
# check_hardening.sh FILE...: whether a program or an extension of ours is built as cmake/FullboreTargets.cmake means it:
# at a random place, with all of its tables read-only before it starts, without an executable stack, with watched
# stacks and buffers, without a path of the machine that built it, and not looking for libraries where it is called.
source "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || die "which files?"
for file in "$@"; do
  [ -f "$file" ] || die "no such file: '$file'"
  header="$(readelf -hW "$file")" segments="$(readelf -lW "$file")"
  dynamic="$(readelf -dW "$file")" symbols="$(readelf --dyn-syms -W "$file")"
  [[ "$header" =~ Type:\ +DYN ]] || die "$file: not position-independent (-pie)"
  [[ "$segments" == *GNU_RELRO* ]] || die "$file: no read-only relocations (-z relro)"
  [[ "$dynamic" =~ BIND_NOW|FLAGS_1.*NOW ]] || die "$file: functions are bound late, so RELRO is partial (-z now)"
  [[ "$segments" =~ GNU_STACK[^$'\n']*\ RW\  ]] || die "$file: an executable stack (-z noexecstack)"
  [[ "$symbols" == *__stack_chk_fail* ]] || die "$file: no watched stacks (-fstack-protector-strong)"
  [[ "$symbols" =~ __[a-z]+_chk@ ]] || die "$file: no watched buffers (-D_FORTIFY_SOURCE=2)"
  if [[ "$dynamic" =~ \(R(UN)?PATH\)[^[]*\[([^]]*)\] ]]; then
    parts=":${BASH_REMATCH[2]}:"
    [[ ! "$parts" =~ :([^/\$:][^:]*)?: ]] || die "$file: looks for libraries in the working directory (RUNPATH)"
  fi
  if found="$(strings -a "$file" | grep -m1 -F -e "$root/" -e "${HOME%/}/.")"; then
    die "$file: names a place on this machine: $found"
  fi
done
