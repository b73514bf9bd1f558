#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library that is installed has its checks; only the bench that measures what they cost has not. The mark is in data that cannot be optimised away.
#
# usage: checked.sh LIBRARY DRAY-PROBE-UNCHECKED
set -euo pipefail
readonly mark='dray: built without checks'
grep -qaF "$mark" "$2" || { echo "$2 has its checks: the bench would compare the library with itself"; exit 1; }
! grep -qaF "$mark" "$1" || { echo "$1 was built without checks"; exit 1; }
