// SPDX-License-Identifier: Apache-2.0

package host

// the same when written and read again.
