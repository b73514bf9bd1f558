/* SPDX-License-Identifier: Apache-2.0 */
/* Words for errors and the library itself. */
#include <errno.h>

#include "port.h"

EXPORT const char *dray_version(void)
{
	return DRAY_VERSION;
}

EXPORT const char *dray_strerror(int error)
{
	switch (error < 0 ? -error : 0) {
	case 0:
		return "no error";
	case EINVAL:
		return "an argument is not acceptable: a name, a size, a queue, or an option";
	case E2BIG:
		return "an option that this version of the library does not have, or a struct "
		       "whose size was not set";
	case EBADF:
		return "not an open port, or a port of the process before fork";
	case ENOENT:
		return "no such port here: is its directory mounted, and does the chain have this "
		       "port?";
	case ECONNREFUSED:
		return "nobody listens at the port's socket: does the daemon run?";
	case ETIMEDOUT:
		return "the broker did not answer in time";
	case EBUSY:
		return "the port is open elsewhere, or too many generations have buffers out";
	case EPROTO:
		return "the broker broke the protocol";
	case EPROTONOSUPPORT:
		return "the broker speaks another version of the protocol";
	case EPERM:
		return "the memory lacks seals";
	case ENODATA:
		return "the memory has holes";
	case ENOMEM:
		return "out of memory";
	case ENOTSUP:
		return "not in this mode";
	case EINTR:
		return "interrupted by a signal";
	case EACCES:
		return "no permission for the port's socket";
	case ENAMETOOLONG:
		return "the path of the port's socket has more than 107 characters";
	case ECONNRESET:
		return "the broker hung up";
	default:
		return "an error of the operating system";
	}
}
