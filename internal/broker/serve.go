// SPDX-License-Identifier: Apache-2.0

package broker

// controlName is the control socket in the broker's directory.
const controlName = "control"
