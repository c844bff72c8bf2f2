"""Functions as machine code: numba makes it once on a machine, a file keeps it, llvmlite loads it.

numba takes seconds to compile a function; what is kept is loaded in some milliseconds, without numba. Python
calls a `Kernel`; functions with `@part` or `@inlined` are called by kernels, and by each other. All of them
are plain Python over numbers and arrays, and write into arrays that they are given. So where no machine code
can be had, they run as they are.
"""
