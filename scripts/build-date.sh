#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Print the date that programs report with their version, as YYYY-MM-DD in UTC. It is a property of the source, so that two
# builds of one commit are the same: SOURCE_DATE_EPOCH if set, else the date of the last commit, else that of the file VERSION.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

epoch=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct 2>/dev/null || true)}
date --utc --date="@${epoch:-$(stat --format=%Y VERSION)}" +%F
