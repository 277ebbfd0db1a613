#!/usr/bin/env bash
# Installs the official client of the Model Context Protocol, with which tests/run/test_mcp_client.py speaks, into
# build/mcp; quick when nothing is missing. Without it these tests are skipped.
source "$(dirname "$0")/lib.sh"

cd "$root"
tools_at build/mcp scripts/requirements-mcp.txt "the tests of fullbore mcp"
