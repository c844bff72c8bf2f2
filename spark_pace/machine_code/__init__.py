"""Functions as machine code: numba makes it once on a machine, a file keeps it, llvmlite loads it.

numba takes seconds to compile a function. A process loads what is kept in some milliseconds, without numba.

Python calls a `Kernel`. Kernels call functions with `@part` or `@inlined`, and these call each other. All of
them are plain Python over numbers and arrays, and write into arrays that they are given. So where there is no
machine code, they run as they are.
"""
