/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the reasons. */
#include "reason.h"

const char *reason_name(enum reason reason)
{
#define REASON_NAME(id, name) [id] = name,
	static const char *const names[] = {REASONS(REASON_NAME)};
#undef REASON_NAME

	return names[reason];
}
