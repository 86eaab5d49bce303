"""Where the ranks of a job are analysed: processes of this machine, or a Dask cluster."""
