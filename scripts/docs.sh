#!/usr/bin/env bash
# Makes the site from docs/: build/docs, to be looked at from the disk or put on any server. mkdocs-material lives in a
# virtual environment of its own (build/docs-tools), because nothing else here needs it. Prints the first page's path.
source "$(dirname "$0")/lib.sh"

cd "$root"
tools="build/docs-tools"
install_apart "$tools" scripts/requirements-docs.txt "the site"
NO_MKDOCS_2_WARNING=1 "$tools/bin/mkdocs" build --quiet --strict >&2
printf '%s\n' "$root/build/docs/index.html"
